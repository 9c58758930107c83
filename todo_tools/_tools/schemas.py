"""Argument schemas that are shown to the model and not enforced."""

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.tools import InjectedToolArg
from pydantic import BaseModel, Field, WithJsonSchema, create_model, model_validator
from pydantic.json_schema import SkipJsonSchema


class _Lenient(BaseModel):
    """Arguments that never fail validation: every field accepts any value and may be missing."""

    # LangGraph gives the runtime only to a tool whose schema has a field for it. It holds the whole
    # state, so it is left out when langchain-core dumps the arguments of a call.
    runtime: SkipJsonSchema[Annotated[Any, InjectedToolArg]] = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _allow_missing(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        missing = {name: None for name, field in cls.model_fields.items() if field.is_required()}
        return {**missing, **values}


def lenient_schema(name: str, /, *optional: str, **schemas: dict[str, Any]) -> type[BaseModel]:
    """Create an argument schema that the model sees, but that is not enforced.

    Args:
        name: The name of the tool.
        optional: The parameters that the model may leave out; they are then `None`.
        schemas: The JSON schema of each parameter. State limits in its `description`, because some
            providers ignore the keywords for limits and others refuse the whole schema.

    Returns:
        A class to pass as `args_schema`.

    Example:
        ```python
        query = {"type": "string", "description": "What to look for"}
        limit = {"type": "integer", "description": "The most results"}
        args = lenient_schema("search", "limit", query=query, limit=limit)
        ```
    """
    fields: dict[str, Any] = {
        # With a default factory, the schema has no `"default": null`, which some providers refuse.
        each: (
            Annotated[Any, WithJsonSchema(schema)],
            Field(default_factory=lambda: None) if each in optional else ...,
        )
        for each, schema in schemas.items()
    }
    return create_model(name, __base__=_Lenient, **fields)
