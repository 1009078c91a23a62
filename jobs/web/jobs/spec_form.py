"""The form beside the editor: fields of a specification, typed and explained by its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import yaml
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST

from jobs.models import Project
from jobs.permissions import Actor, Verb, project_for, require
from jobs.readers.default_values import usual_values
from jobs.web.base.access import signed_in
from jobs.web.jobs.form_entries import ROWS, Row, rows_of
from jobs.web.jobs.linked_fields import linked_value, set_linked_field, set_linked_row
from jobs.web.jobs.project_fill import filled_from, has_project_files
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec import json_schema
from monarch_client.spec.documents import is_several
from monarch_client.spec.files import InvalidFileError
from monarch_client.spec.findings import SpecCode
from monarch_client.spec.form_edits import check_text
from monarch_client.spec.from_yaml import MOST_BYTES
from monarch_client.spec.places import FormError

# Group, then path and label of each field, in the order of the form.
_GROUPS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("Job", (
        ("name", "Name"), ("num_nodes", "Nodes"), ("setup", "Setup command"), ("run", "Command"),
    )),
    ("Machines", (
        ("resources.accelerators", "GPUs of each node"), ("resources.infra", "Infra"),
        ("resources.cpus", "CPUs"), ("resources.memory", "Memory"),
        ("resources.use_spot", "Spot machines"),
    )),
    ("Code and variables", (
        ("workdir", "Work directory"), ("workdir.url", "Git repository"),
        ("workdir.ref", "Git branch, tag or commit"), ("envs", "Variables"),
        ("secrets", "Secrets"),
    )),
    ("Monarch", (("portal.meshes", "Meshes"),)),
    ("Queue", (
        ("portal.queue", "Queue"), ("portal.priority", "Priority"), ("portal.hold", "Hold"),
        ("portal.preemptible", "Preemptible"), ("portal.depends_on", "Depends on"),
    )),
    ("Limits and retries", (
        ("portal.max_duration", "Longest run"), ("portal.budget_usd", "Budget, US$"),
        ("portal.retry.max_attempts", "Attempts"), ("portal.retry.max_recoveries", "Recoveries"),
    )),
    ("Array", (("portal.array", "Values"), ("portal.max_parallel", "Jobs at once"))),
)  # fmt: skip
_SCRIPTS = {"run", "setup"}


@dataclass(frozen=True, slots=True)
class RowWords:
    """The labels of a row's name and value. `empty`: what a missing value means, if it may be."""

    name: str
    value: str
    empty: str = ""
    example: str = ""


_ROW_WORDS = {
    "envs": RowWords("Variable", "Value", "no value yet"),
    "secrets": RowWords("Secret", "Stored name", "same name"),
    "portal.meshes": RowWords("Mesh", "Nodes"),
    "portal.array": RowWords("Name", "Values", example="such as [1, 2]"),
    "portal.depends_on": RowWords("", "Job", example="name or number"),
}


@dataclass(frozen=True, slots=True)
class SpecField:
    """One field. `kind`: text, script, rows, whole, number or flag."""

    path: str
    label: str
    kind: str
    about: str
    placeholder: str
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> RowWords | None:
        """The labels of its rows; None if it has none."""
        return _ROW_WORDS.get(self.path)

    @property
    def slug(self) -> str:
        """The id of the field in the page."""
        return "f-" + self.path.replace(".", "-")


@cache
def spec_fields() -> list[tuple[str, list[SpecField]]]:
    """Return the fields by group."""
    schema = json_schema()
    return [
        (group, [_field(schema, path, label) for path, label in fields])
        for group, fields in _GROUPS
    ]


def spec_fields_in(project: Project) -> list[tuple[str, list[SpecField]]]:
    """Return the fields by group, with the values that are the default in this project."""
    usual = usual_values(project)
    return [
        (
            group,
            [replace(each, placeholder=usual.get(each.path, each.placeholder)) for each in fields],
        )
        for group, fields in spec_fields()
    ]


@require_POST
@signed_in
def edit_spec(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Return the text with the field at `path` set, and the values of all fields.

    A field with rows takes the change of one: see `form_entries`. Without `path` only the values;
    with the text of a folder's project files, what they give in place of the text. `problem`: why
    the form is off, or does not take the value.
    """
    require(actor, Verb.SUBMIT_JOB, project_for(actor, slug))
    source = request.POST.get("source", "").replace("\r\n", "\n")
    known = {each.path: each for each in _all_fields()}
    chosen = known.get(request.POST.get("path", ""))
    if any(len(text) > MOST_BYTES for text in request.POST.values()):
        return JsonResponse({"problem": "The text is too long for the form."})
    if is_several(source):
        return JsonResponse({"problem": "The form edits single jobs; this text has several."})
    try:
        if has_project_files(request.POST):
            source = filled_from(request.POST, source)
        check_text(source)
        if chosen is not None:
            source = _changed(source, chosen, request.POST)
            check_text(source)
        values = {path: _value_of(source, path) for path in known}
    except FormError as error:
        return JsonResponse({"problem": f"Edit the text instead: {error}"})
    except InvalidSpecErrors as error:
        return JsonResponse({"problem": _problem_of(error)})
    except (yaml.YAMLError, ValueError, RecursionError):
        return JsonResponse({"problem": "The form is off until the text is valid YAML."})
    return JsonResponse({"source": source, "values": values})


def _changed(source: str, chosen: SpecField, posted: Mapping[str, str]) -> str:
    change = {
        key: posted[key].replace("\r\n", "\n") for key in ("row", "name", "value") if key in posted
    }
    if chosen.path in ROWS:
        return set_linked_row(source, chosen.path, change)
    return set_linked_field(source, chosen.path, _typed(chosen, change.get("value", "")))


def _value_of(source: str, path: str) -> str | list[Row]:
    return rows_of(source, path) if path in ROWS else _shown(linked_value(source, path))


def _problem_of(error: InvalidSpecErrors) -> str:
    if isinstance(error, InvalidFileError):
        return str(error)
    first = error.errors[-1]
    if first.code == SpecCode.YAML_SYNTAX.value:
        return "The form is off until the text is valid YAML."
    return f"The form is off: {first.message}"


def _all_fields() -> Iterator[SpecField]:
    return (each for _, fields in spec_fields() for each in fields)


def _field(schema: dict[str, Any], path: str, label: str) -> SpecField:
    found = _schema_at(schema, path)
    types = found.get("type", [])
    types = {types} if isinstance(types, str) else set(types)
    kind, attributes = "text", {}
    if path in _SCRIPTS:
        kind = "script"
    elif path in ROWS:
        kind = "rows"
    elif "boolean" in types:
        kind = "flag"
    elif types & {"integer", "number"}:
        kind = "whole" if "integer" in types else "number"
        attributes = {key: found[f"{key}imum"] for key in ("min", "max") if f"{key}imum" in found}
    placeholder = _placeholder(kind, found)
    return SpecField(path, label, kind, found.get("description", ""), placeholder, attributes)


def _placeholder(kind: str, found: dict[str, Any]) -> str:
    """Return the default of a key, or an example that is marked as one."""
    if default := _shown(found.get("default")):
        return default
    example = _shown(next(iter(found.get("examples", ())), None))
    is_marked = example and kind in {"text", "whole", "number"}
    return f"such as {example}" if is_marked else example


def _schema_at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the schema of a key; of several alternatives the one that has it."""
    here = schema
    for key in path.split("."):
        options = [here, *here.get("anyOf", ())]
        here = next(
            (each["properties"][key] for each in options if key in each.get("properties", {})), {}
        )
    return here


def _typed(chosen: SpecField, text: str) -> Any:
    """Return the value that the text of a field means; text that does not fit stays text."""
    if not text.strip():
        return None
    return _READERS[chosen.kind](text)


def _number(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


_READERS: dict[str, Callable[[str], Any]] = {
    "flag": lambda text: True if text == "true" else None,
    "whole": _number,
    "number": _number,
    "script": lambda text: text,
    "text": lambda text: text.strip(),
}


def _shown(value: Any) -> str:
    """Return a value as the text of a field."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_inline(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(each if isinstance(each, str) else _inline(each) for each in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _inline(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
