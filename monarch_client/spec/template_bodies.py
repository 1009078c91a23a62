"""The specification of a template, with values in place of its placeholders.

A value stays a value: it is written by the emitter of YAML, and the text that results must have the
same structure as the template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.entries import without_entries
from monarch_client.spec.findings import Findings, SpecCode
from monarch_client.spec.from_yaml import (
    DEEPEST,
    MOST_BYTES,
    refuse_large,
    refuse_odd_characters,
)
from monarch_client.spec.nodes import plain_value
from monarch_client.spec.template_parameters import ParameterValue
from monarch_client.spec.text_edits import YAML_LOADER
from monarch_client.spec.yaml_text import as_block, in_one_line

_PLACEHOLDER = re.compile(r"\$\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}")
_BLOCK_HEADER = re.compile(r"^[|>][0-9+-]*")
_ENDS = re.compile(r"[ \n]*\Z")
_BLOCKS = {"|", ">"}


class _TooDeepError(yaml.YAMLError):
    """A text whose nodes are nested deeper than a specification may be."""

    problem = f"it is nested deeper than {DEEPEST} levels"

    def __init__(self, mark: Any) -> None:
        super().__init__()
        self.problem_mark = mark


Values = Mapping[str, ParameterValue]


def placeholders(body: str, lines_before: int) -> Iterator[tuple[str, int]]:
    """Yield the name and line of each placeholder; comments have none.

    InvalidSpecErrors: the text, before which there are so many lines, is not valid YAML.
    """
    _events(body, lines_before)
    line, at = lines_before + 1, 0
    for token, _ in _scalars(body):
        start, end = token.start_mark.index, token.end_mark.index
        for found in _PLACEHOLDER.finditer(body, start, end):
            line += body.count("\n", at, found.start())
            at = found.start()
            yield found[1], line


def filled(body: str, values: Values, lines_before: int = 0) -> str:
    """Return a specification with the values in place; comments stay as they are.

    The entries of values that are empty are left out. InvalidSpecErrors: it is not valid YAML.
    """
    _events(body, lines_before)
    body = without_entries(body, lambda node: _is_empty(node, values))
    _check_size(body, values)
    expected = [each for event in _events(body, lines_before) for each in _expected(event, values)]
    for has_blocks in (True, False):
        text = _replaced(body, values, has_blocks=has_blocks)
        if _has_events(text, expected):
            return text
    message = "These values do not fit where the template has them: one may be too long for a key."
    raise InvalidSpecErrors([SpecError("", None, SpecCode.BAD_VALUE.value, message)])


def _check_size(body: str, values: Values) -> None:
    """Raise InvalidSpecErrors for values that make the text too large, before it is written."""
    size = len(body)
    for token, _ in _scalars(body):
        is_block = token.style in _BLOCKS
        for line in token.value.split("\n") if is_block else [token.value]:
            depth = _depth(line) if is_block else 0
            for found in _PLACEHOLDER.finditer(line):
                text = values[found[1]].text
                size += len(text) + depth * text.count("\n") - len(found[0])
                if size > MOST_BYTES:
                    refuse_large(Findings(), "With these values the specification")


def _events(text: str, lines_before: int) -> list[Any]:
    """Return the events of a YAML text."""
    refuse_odd_characters("\n" * lines_before + text, Findings())
    events: list[Any] = []
    depth = 0
    try:
        for event in yaml.parse(text, Loader=YAML_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise _TooDeepError(event.start_mark)
            events.append(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = lines_before + mark.line + 1 if mark else None
        problem = getattr(error, "problem", None) or "it cannot be read"
        message = f"This is not valid YAML: {problem}."
        found = SpecError("", line, SpecCode.YAML_SYNTAX.value, message)
        raise InvalidSpecErrors([found]) from error
    return events


def _has_events(text: str, expected: list[tuple[str, Any]]) -> bool:
    try:
        return [_facts(event) for event in yaml.parse(text, Loader=YAML_LOADER)] == expected
    except yaml.YAMLError:
        return False


def _facts(event: Any) -> tuple[str, Any]:
    """Return the kind of an event, and its value or anchor."""
    return type(event).__name__, getattr(event, "value", getattr(event, "anchor", None))


def _expected(event: Any, values: Values) -> Iterator[tuple[str, Any]]:
    """Yield the facts of an event, or of what its placeholders become."""
    if not isinstance(event, yaml.ScalarEvent) or not _PLACEHOLDER.search(event.value):
        yield _facts(event)
        return
    content = _content(event, values)
    if isinstance(content, list):
        yield "SequenceStartEvent", event.anchor
        yield from (("ScalarEvent", each) for each in content)
        yield "SequenceEndEvent", None
    else:
        yield "ScalarEvent", content if isinstance(content, str) else content.text


def _scalars(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the scalars with placeholders, each with the column of the collection around it."""
    columns = [0]
    for token in yaml.scan(text, Loader=YAML_LOADER):
        if isinstance(token, yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken):
            columns.append(token.start_mark.column)
        elif isinstance(token, yaml.BlockEndToken):
            columns.pop()
        elif isinstance(token, yaml.ScalarToken) and _PLACEHOLDER.search(token.value):
            yield token, columns[-1]


def _replaced(body: str, values: Values, *, has_blocks: bool) -> str:
    """Return `body` with its scalars replaced, those in blocks as blocks if `has_blocks`."""
    pieces, at = [], 0
    for token, column in _scalars(body):
        start, end = token.start_mark.index, token.end_mark.index
        content, raw = _content(token, values), body[start:end]
        if isinstance(content, str) and token.style in _BLOCKS:
            written = _block(content, raw, column if has_blocks else None)
        else:
            written = content.text if isinstance(content, _Plain) else in_one_line(content)
        pieces += [body[at:start], written]
        at = end
    return "".join([*pieces, body[at:]])


def _block(content: str, raw: str, column: int | None) -> str:
    """Return the text in place of the block `raw`, and the comment beside its |.

    It is a block below this column if there is one, and a block holds the text.
    """
    block = None if column is None else as_block(content, column)
    header, line_end, rest = (block or in_one_line(content)).partition("\n")
    comment = _BLOCK_HEADER.sub("", raw.partition("\n")[0])
    ends = _ENDS.findall(raw)[0]
    # What follows the last line end indents the next entry.
    ends = "\n" * max(1, ends.count("\n")) + ends.rpartition("\n")[2]
    return f"{header}{comment}{line_end}{rest}{ends}"


@dataclass(frozen=True, slots=True)
class _Plain:
    """A scalar that is no text, as it is written."""

    text: str


def _content(scalar: Any, values: Values) -> str | list[str] | _Plain:
    """Return what a scalar with placeholders becomes.

    A placeholder alone becomes a value of its type, and nothing if it is empty; in quotes it
    becomes text, unless it is a list.
    """
    whole = _PLACEHOLDER.fullmatch(scalar.value.strip())
    if scalar.style in _BLOCKS:
        return "\n".join(_line_of_block(line, values) for line in scalar.value.split("\n"))
    if whole and (not scalar.style or isinstance(values[whole[1]].value, list)):
        return _whole(values[whole[1]])
    return _PLACEHOLDER.sub(lambda found: values[found[1]].text, scalar.value)


def _whole(given: ParameterValue) -> str | list[str] | _Plain:
    if isinstance(given.value, list):
        return given.value
    if isinstance(given.value, str):
        return given.value or _Plain("null")
    is_read_back = plain_value(given.text) == given.value
    return _Plain(given.text if is_read_back else in_one_line(given.value))


def _line_of_block(line: str, values: Values) -> str:
    """Return a line of a block with its values; further lines of a value are as deep as it."""
    deep = "\n" + " " * _depth(line)
    return _PLACEHOLDER.sub(lambda found: values[found[1]].text.replace("\n", deep), line)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_empty(node: yaml.Node, values: Values) -> bool:
    """Whether a node is a placeholder alone, of an empty text."""
    if not isinstance(node, yaml.ScalarNode) or node.style:
        return False
    whole = _PLACEHOLDER.fullmatch(node.value.strip())
    return whole is not None and values[whole[1]].value == ""
