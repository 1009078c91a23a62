"""Templates of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from monarch_client.wire.values import CHOICES, Moment

Scope: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "TemplateScope"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template as lists show it."""

    name: str
    scope: Annotated[Scope, Meta(description="Which projects can use it.")]
    title: str
    about: str
    version: int
    saved_by: str
    saved_at: Annotated[Moment | None, Meta(description="Null for built-in templates.")]
    can_manage: Annotated[bool, Meta(description="Whether you may save and delete it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateVersion:
    """One stored version of a template."""

    version: int
    saved_by: str
    saved_at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateDetail(Template):
    """A template with its text and its parameters."""

    source: Annotated[str, Meta(description="Its header and specification, as they were saved.")]
    parameters: Annotated[
        dict[str, Any], Meta(description="The parameters, as the JSON Schema of an object.")
    ]
    versions: Annotated[list[TemplateVersion], Meta(description="The newest first.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledTemplate:
    """The specification that a template and values make."""

    spec: str
