"""Templates: job specifications with typed parameters.

A template is a YAML text of two parts, separated by a line of ---: a header with `name`, `title`,
`about` and `parameters`, and the specification, in which `${{ name }}` is the value of a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.documents import documents_in
from monarch_client.spec.findings import Findings, SpecCode, nearest
from monarch_client.spec.from_yaml import MOST_BYTES, read_yaml, refuse_large
from monarch_client.spec.job_spec import JobSpec
from monarch_client.spec.shapes import Schema, Text
from monarch_client.spec.tables import Key, Table
from monarch_client.spec.template_bodies import filled, placeholders
from monarch_client.spec.template_parameters import (
    PARAMETERS,
    Parameter,
    ParameterValue,
    parameters_in,
)

NAME = r"[a-z][a-z0-9-]{0,59}"
_MARK = re.compile(r"^---[ \t]*\n", re.MULTILINE)

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
        if len(text) > MOST_BYTES:
            refuse_large(findings, "The template")
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

    def values_of(self, given: Mapping[str, Any]) -> dict[str, ParameterValue]:
        """Return a value of each parameter. InvalidSpecErrors names all that do not fit."""
        known = [each.name for each in self.parameters]
        errors = [_unknown(name, known) for name in given if name not in known]
        values: dict[str, ParameterValue] = {}
        for each in self.parameters:
            value = given.get(each.name)
            is_given = value is not None and (value != "" or each.type == "string")
            try:
                found = each.read(value) if is_given else each.default
                if found is None or (value == "" and each.is_required):
                    raise ValueError(f"{each.name} is missing: {each.about or each.title}".strip())
                values[each.name] = found
            except ValueError as error:
                path, code = f"values.{each.name}", SpecCode.BAD_VALUE.value
                errors.append(SpecError(path, None, code, str(error)))
        if errors:
            raise InvalidSpecErrors(errors)
        return values

    def filled_in(self, given: Mapping[str, Any]) -> str:
        """Return the specification with the values in place. InvalidSpecErrors as `values_of`."""
        values = self.values_of(given)
        return filled(self.body, values, self.lines_before)

    def _check(self) -> None:
        """Raise InvalidSpecErrors for unknown placeholders, and for an invalid specification."""
        known = [each.name for each in self.parameters]
        findings = Findings()
        for name, line in placeholders(self.body, self.lines_before):
            if name not in known and not findings.is_full:
                guess = nearest(name, known)
                hint = f" Did you mean {guess}?" if guess else ""
                message = f"There is no parameter {name}.{hint}"
                findings.add("", SpecCode.UNKNOWN_KEY, message, line=line)
        findings.raise_if_any()
        if any(each.is_required for each in self.parameters):
            return
        if errors := [*self._errors_of_defaults()]:
            raise InvalidSpecErrors(errors)

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


def _unknown(name: str, known: list[str]) -> SpecError:
    guess = nearest(name, known)
    there = ", ".join(known) or "none"
    message = f"There is no parameter {name}; there are: {there}."
    return SpecError(f"values.{name}", None, SpecCode.UNKNOWN_KEY.value, message, guess)
