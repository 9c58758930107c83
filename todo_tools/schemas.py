"""Schemas of tools that tell the model of its mistakes themselves, in a few words.

__all__ = ["LenientArgs", "argument", "optional_argument"]

langchain-core answers arguments that fail validation with all of them echoed back. A tool with
these schemas is called with whatever the model wrote, and says in its own words what is wrong.

Example:
    ```python
    args = create_model(
        "search",
        __base__=LenientArgs,
        query=argument(type="string", description="What to look for"),
        limit=optional_argument(type="integer", description="The largest number of results"),
    )
    ```
"""

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.tools import InjectedToolArg
from pydantic import BaseModel, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

__all__ = ["LenientArgs", "argument", "optional_argument"]


class LenientArgs(BaseModel):
    """Arguments that never fail validation: every field takes anything, and may be missing.

    Only its JSON schema, which the model sees, says what a field should be.
    """

    # A tool whose schema has no fields is not given the runtime either. Excluded from dumps, since
    # langchain-core dumps the arguments of every call and this holds the whole state.
    runtime: SkipJsonSchema[Annotated[Any, InjectedToolArg]] = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _allow_missing(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        missing = {name: None for name, field in cls.model_fields.items() if field.is_required()}
        return {**missing, **values}


def argument(**schema: Any) -> Any:
    """A field that the model must fill in.

    Args:
        schema: Its JSON schema, inline. Say limits in the `description`: some providers drop the
            keywords for them, others refuse the whole schema.

    Returns:
        A field definition for `pydantic.create_model`.
    """
    return Annotated[Any, WithJsonSchema(schema)], ...


def optional_argument(**schema: Any) -> Any:
    """A field that the model may leave out; it is `None` then.

    Args:
        schema: Its JSON schema, as in `argument`.

    Returns:
        A field definition for `pydantic.create_model`.
    """
    # A default factory leaves no `"default": null` in the schema, which some providers refuse.
    return Annotated[Any, WithJsonSchema(schema)], Field(default_factory=lambda: None)
