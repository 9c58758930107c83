"""Create argument schemas for tools that validate their arguments themselves."""

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.tools import InjectedToolArg
from pydantic import BaseModel, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema


class LenientArgs(BaseModel):
    """Arguments that never fail validation: every field accepts any value and may be missing.

    The model sees the JSON schema of each field, but the schema is not enforced.
    """

    # A tool whose schema has no fields does not receive the runtime. The field is excluded from
    # dumps, because langchain-core dumps the arguments of every call and it holds the whole state.
    runtime: SkipJsonSchema[Annotated[Any, InjectedToolArg]] = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _allow_missing(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        missing = {name: None for name, field in cls.model_fields.items() if field.is_required()}
        return {**missing, **values}


def argument(**schema: Any) -> Any:
    """Define a required field.

    Args:
        schema: The JSON schema of the field. State limits in the `description`, because some
            providers ignore the keywords for limits and others reject the whole schema.

    Returns:
        A field definition for `pydantic.create_model`.
    """
    return Annotated[Any, WithJsonSchema(schema)], ...


def optional_argument(**schema: Any) -> Any:
    """Define an optional field; it is `None` if the model leaves it out.

    Args:
        schema: The JSON schema of the field, as in `argument`.

    Returns:
        A field definition for `pydantic.create_model`.
    """
    # With a default factory, the schema has no `"default": null`, which some providers reject.
    return Annotated[Any, WithJsonSchema(schema)], Field(default_factory=lambda: None)
