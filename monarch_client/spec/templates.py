"""Templates: job specifications with typed parameters.

A template is a YAML text of two parts, separated by a line of ---: a header with `name`, `title`,
`about` and `parameters`, and the specification, in which `${{ name }}` is the value of a parameter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.documents import documents_in
from monarch_client.spec.findings import Findings, SpecCode, nearest
from monarch_client.spec.from_yaml import read_yaml, refuse_odd_characters
from monarch_client.spec.job_spec import JobSpec
from monarch_client.spec.shapes import Schema, Text
from monarch_client.spec.tables import Key, Table
from monarch_client.spec.template_parameters import PARAMETERS, Parameter, parameters_in

NAME = r"[a-z][a-z0-9-]{0,59}"
_MARK = re.compile(r"^---[ \t]*\n", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\$\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_HEADER = Table(
    (
        Key(
            "name",
            "The template's name in its project.",
            Text("a name of small letters, digits and -", NAME),
            "torchrun",
            required=True,
            names="templates",
        ),
        Key("title", "A few words for lists.", Text(most_bytes=200), "torchrun on several nodes"),
        Key("about", "What the job does, and what it needs.", Text(), "Starts torchrun."),
        Key("parameters", "The values to fill in.", PARAMETERS, {"nodes": {"type": "integer"}}),
    ),
    words="a mapping with name, title, about and parameters",
)


def header_schema() -> Schema:
    """Return the JSON Schema of a template's header."""
    return _HEADER.schema()


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """A checked template. `body` is the text of the specification, after `lines_before` lines."""

    name: str
    title: str
    about: str
    parameters: tuple[Parameter, ...]
    body: str
    lines_before: int

    @classmethod
    def parse(cls, source: str) -> JobTemplate:
        """Read and check a template. InvalidSpecErrors carries everything wrong with it."""
        made = cls.read(source)
        made._check()
        return made

    @classmethod
    def read(cls, source: str) -> JobTemplate:
        """Read a template that was checked before, perhaps by another version of the portal."""
        text = source.removeprefix("\ufeff").replace("\r\n", "\n")
        findings = Findings()
        header, lines_before, body = _parts(text, findings)
        values = _HEADER.read(read_yaml(header, findings), "", findings)
        findings.raise_if_any()
        parameters = parameters_in(values.get("parameters", {}), findings)
        findings.raise_if_any()
        about = values.get("about", "")
        name = values["name"]
        return cls(name, values.get("title") or name, about, parameters, body, lines_before)

    def schema(self) -> Schema:
        """Return the parameters as one JSON Schema of an object."""
        required = [each.name for each in self.parameters if each.is_required]
        return {
            "type": "object",
            "properties": {each.name: each.schema() for each in self.parameters},
            "additionalProperties": False,
        } | ({"required": required} if required else {})

    def values_of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a value of each parameter, typed. InvalidSpecErrors names all that do not fit."""
        known = [each.name for each in self.parameters]
        errors = [_unknown(name, known) for name in given if name not in known]
        values: dict[str, Any] = {}
        for each in self.parameters:
            value = given.get(each.name)
            if value is None or (value == "" and each.type != "string"):
                value = each.default
            try:
                if value is None or (value == "" and each.is_required):
                    raise ValueError(f"{each.name} is missing: {each.about or each.title}".strip())
                values[each.name] = each.read(value)
            except ValueError as error:
                path, code = f"values.{each.name}", SpecCode.BAD_VALUE.value
                errors.append(SpecError(path, None, code, str(error)))
        if errors:
            raise InvalidSpecErrors(errors)
        return values

    def filled_in(self, given: Mapping[str, Any]) -> str:
        """Return the specification with the values in place. InvalidSpecErrors as `values_of`."""
        values = self.values_of(given)
        return _filled(self.body, _scalars(self.body, self.lines_before), values)

    def _check(self) -> None:
        """Raise InvalidSpecErrors for unknown placeholders, and for an invalid specification."""
        known = [each.name for each in self.parameters]
        errors = [
            SpecError("", line, SpecCode.UNKNOWN_KEY.value, message)
            for line, message in self._unknown_placeholders(known)
        ]
        if not errors:
            _scalars(self.body, self.lines_before)
            if not any(each.is_required for each in self.parameters):
                errors = [*self._errors_of_defaults()]
        if errors:
            raise InvalidSpecErrors(errors)

    def _unknown_placeholders(self, known: list[str]) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(self.body.split("\n"), start=self.lines_before + 1):
            for found in _PLACEHOLDER.finditer(line):
                if found[1] not in known and not line.lstrip().startswith("#"):
                    guess = nearest(found[1], known)
                    hint = f" Did you mean {guess}?" if guess else ""
                    yield number, f"There is no parameter {found[1]}.{hint}"

    def _errors_of_defaults(self) -> Iterator[SpecError]:
        """Yield the errors of the specification that the defaults make."""
        for document in documents_in(self.filled_in({})):
            yield from _errors_of(document.text)


def _errors_of(text: str) -> Iterator[SpecError]:
    """Yield the errors of one specification, without lines: values have moved them."""
    try:
        JobSpec.parse(text, admin=True)
    except InvalidSpecErrors as error:
        for each in error.errors:
            yield SpecError(each.path, None, each.code, each.message, each.suggestion)


def _parts(text: str, findings: Findings) -> tuple[str, int, str]:
    """Return the header, its number of lines, and the specification."""
    opening = _MARK.match(text)
    start = opening.end() if opening else 0
    mark = _MARK.search(text, start)
    if mark is None:
        message = (
            "A template has two parts: a header with its name and parameters, a line of ---, and "
            "the job specification."
        )
        findings.refuse(SpecCode.MISSING, message)
    # Blank lines in place of a first --- keep the line numbers.
    header = "\n" * text.count("\n", 0, start) + text[start : mark.start()]
    return header, text.count("\n", 0, mark.end()), text[mark.end() :]


def _scalars(text: str, lines_before: int) -> list[yaml.ScalarEvent]:
    """Return the scalars of `text` with placeholders. InvalidSpecErrors: it is not valid YAML."""
    refuse_odd_characters("\n" * lines_before + text, Findings())
    try:
        return [
            event
            for event in yaml.parse(text, Loader=_Loader)
            if isinstance(event, yaml.ScalarEvent) and _PLACEHOLDER.search(event.value)
        ]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = lines_before + mark.line + 1 if mark else None
        problem = getattr(error, "problem", None) or "it cannot be read"
        message = f"This is not valid YAML: {problem}."
        found = SpecError("", line, SpecCode.YAML_SYNTAX.value, message)
        raise InvalidSpecErrors([found]) from error


def _filled(text: str, scalars: list[yaml.ScalarEvent], values: Mapping[str, Any]) -> str:
    """Return `text` with the placeholders in `scalars` replaced; comments stay as they are."""
    pieces, end = [], 0
    for event in scalars:
        marks: Any = event  # the stubs of PyYAML know no marks
        start, stop = marks.start_mark.index, marks.end_mark.index
        pieces += [text[end:start], _scalar(event, text[start:stop], values)]
        end = stop
    return "".join([*pieces, text[end:]])


def _scalar(event: yaml.ScalarEvent, raw: str, values: Mapping[str, Any]) -> str:
    """Return one scalar with its values.

    A placeholder alone becomes a value of its type, and nothing if it is empty; in quotes it
    becomes text, unless it is a list.
    """
    whole = _PLACEHOLDER.fullmatch(event.value.strip())
    if event.style in {"|", ">"}:
        return "\n".join(_line_of_block(line, values) for line in raw.split("\n"))
    if whole and (not event.style or isinstance(values[whole[1]], list)):
        value = values[whole[1]]
        return json.dumps(None if value == "" else value, ensure_ascii=False)
    made = _PLACEHOLDER.sub(lambda found: _text_of(values[found[1]]), event.value)
    return json.dumps(made, ensure_ascii=False)


def _line_of_block(line: str, values: Mapping[str, Any]) -> str:
    """Return a line of a block with its values; further lines of a value are as deep as it."""
    deep = "\n" + line[: len(line) - len(line.lstrip(" "))]
    return _PLACEHOLDER.sub(lambda found: _text_of(values[found[1]]).replace("\n", deep), line)


def _text_of(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def _unknown(name: str, known: list[str]) -> SpecError:
    guess = nearest(name, known)
    there = ", ".join(known) or "none"
    message = f"There is no parameter {name}; there are: {there}."
    return SpecError(f"values.{name}", None, SpecCode.UNKNOWN_KEY.value, message, guess)
