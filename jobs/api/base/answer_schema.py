"""Describe the dataclasses of `monarch_client.wire` in OpenAPI: `responses={200: Page[Job]}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin

import msgspec
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.plumbing import (
    ResolvedComponent,
    build_choice_description_list,
    list_hash,
)

from jobs import statuses
from monarch_client.wire.values import CHOICES

_REFERENCES = "#/components/schemas/"
_NULL = {"type": "null"}
# Fields that some answers lack. All others are required: a default serves clients alone.
NOT_ALWAYS = {
    ("FramesAnswer", "gateway"),
    ("FramesAnswer", "stacks"),
    ("FramesAnswer", "stop"),
    ("Problem", "errors"),
    ("ProblemRow", "line"),
    ("ProblemRow", "column"),
    ("ProblemRow", "end_column"),
    ("ProblemRow", "suggestion"),
    ("ProblemRow", "position"),
    ("SpecError", "document"),
}


class AnswerExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """The extension of drf-spectacular for answers that are dataclasses."""

    @classmethod
    def _matches(cls, target: Any) -> bool:
        return is_dataclass(get_origin(target) or target)

    def get_name(self, auto_schema: Any, direction: Any) -> str:
        """Return the name of the component: `Job`, and `JobPage` for `Page[Job]`."""
        origin = get_origin(self.target)
        if origin is None:
            return str(self.target.__name__)
        return str(get_args(self.target)[0].__name__) + "Page"

    def get_identity(self, auto_schema: Any, direction: Any) -> Any:
        """Return one identity for all, since nested ones are registered by name."""
        return AnswerExtension

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the component, and register those that it refers to."""
        (own,), components = msgspec.json.schema_components(
            [self.target], ref_template=_REFERENCES + "{name}"
        )
        schema = components.pop(own["$ref"].removeprefix(_REFERENCES))
        for name, nested in components.items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name, ResolvedComponent.SCHEMA, schema=_component(nested), object=AnswerExtension
            )
            auto_schema.registry.register_on_missing(component)
        return _component(schema)


def _component(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dataclass in OpenAPI 3.0."""
    properties = {name: _field(field) for name, field in schema["properties"].items()}
    return {
        "type": "object",
        "description": schema["description"],
        "properties": properties,
        "required": sorted(n for n in properties if (schema["title"], n) not in NOT_ALWAYS),
    }


def _field(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value in OpenAPI 3.0, which has `nullable`, and nothing beside `$ref`."""
    field = {key: value for key, value in schema.items() if key != "default"}
    if "anyOf" in field:
        (kind,) = (_field(each) for each in field.pop("anyOf") if each != _NULL)
        one = {"allOf": [kind]} if "$ref" in kind else kind
        return {**one, **field, "nullable": True}
    if "$ref" in field and len(field) > 1:
        return {"allOf": [{"$ref": field.pop("$ref")}], **field}
    if choices := field.pop(CHOICES, None):
        field |= _choices(getattr(statuses, choices).choices)
    if field.get("type") == "number":
        field["format"] = "double"
    for key in ("items", "additionalProperties"):
        if isinstance(field.get(key), dict):
            field[key] = _field(field[key])
    if field == {"type": "object"}:
        field["additionalProperties"] = {}
    return field


def _choices(choices: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an enumeration in the form that drf-spectacular gives a component of its own."""
    return {
        "enum": [value for value, _ in choices],
        "description": build_choice_description_list(choices),
        "x-spec-enum-id": list_hash(choices),
    }
