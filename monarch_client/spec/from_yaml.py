"""The parser of YAML text into nodes. It refuses what is too large, too deep or too clever.

The events of the parser are consumed one at a time, so that a hostile file is turned away before
it is built; nothing is ever constructed from a tag.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import yaml

from monarch_client.spec.findings import Findings, SpecCode, join, shortened
from monarch_client.spec.nodes import Entry, Node, plain_value
from monarch_client.spec.spans import Span

MOST_BYTES = 256 * 1024
MOST_NODES = 10_000
DEEPEST = 24

# libyaml reads the same language ten times as fast; every wheel of PyYAML brings it.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str, findings: Findings) -> Node:
    """Parse the one document in `text`; `findings.refuse` ends it if that is impossible."""
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "replace")) > MOST_BYTES:
        refuse_large(findings)
    refuse_odd_characters(text, findings)
    try:
        return _Reading(text, findings).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "it cannot be read"
        line = mark.line + 1 if mark else None
        if mark:
            findings.spans.values[""] = Span(mark.line + 1, mark.column + 1, None)
        findings.refuse(SpecCode.YAML_SYNTAX, f"This is not valid YAML: {problem}.", line)
    except (yaml.YAMLError, ValueError) as error:
        findings.refuse(SpecCode.YAML_SYNTAX, f"This is not valid YAML: {shortened(str(error))}.")


def refuse_large(findings: Findings, what: str = "The specification") -> NoReturn:
    """Refuse a text of more than `MOST_BYTES`."""
    findings.refuse(
        SpecCode.TOO_LARGE,
        f"{what} is larger than {MOST_BYTES // 1024} KiB; put long scripts and data into the "
        "workdir.",
    )


def refuse_odd_characters(text: str, findings: Findings) -> None:
    """Refuse control characters and halves of characters, which can be neither stored nor run."""
    for number, line in enumerate(text.split("\n"), start=1):
        column = next((at for at, c in enumerate(line, start=1) if has_odd_character(c)), None)
        if column is None:
            continue
        findings.spans.values[""] = Span(number, column, column + 1)
        findings.refuse(
            SpecCode.BAD_CHARACTER,
            "The specification holds a control character, or half of a character.",
            number,
        )


def has_odd_character(text: str) -> bool:
    """Whether `text` holds what no database column and no shell takes."""
    return any(
        (ord(c) < 32 and c not in "\t\r\n") or c == "\x7f" or "\ud800" <= c <= "\udfff"  # noqa: PLR2004
        for c in text
    )


class _Reading:
    """One pass over the parser's events."""

    def __init__(self, text: str, findings: Findings) -> None:
        self._parser = _Parser(text)
        self._findings = findings
        self._anchors: dict[str, Node] = {}
        self._count = 0

    def document(self) -> Node:
        self._next()  # the stream begins
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return Node(None, 1)
        node = self._node(self._next(), "", 0)
        self._next()  # the document ends
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            self._refuse_feature(after, "A specification is one YAML document; here is a second")
        return node

    def _next(self) -> Any:
        return self._parser.get_event()

    def _node(self, event: Any, path: str, depth: int) -> Node:
        if depth > DEEPEST:
            self._refuse(event, SpecCode.TOO_DEEP, f"Nested deeper than {DEEPEST} levels")
        if isinstance(event, yaml.AliasEvent):
            node = self._alias(event)
            self._counted(event, node.size)
            return node
        if event.tag is not None:
            self._refuse_feature(event, f"YAML tags such as {shortened(event.tag)} are not read")
        self._counted(event, 1)
        node = self._built(event, path, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _built(self, event: Any, path: str, depth: int) -> Node:
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, path, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, path, depth)
        return self._scalar(event)

    def _alias(self, event: Any) -> Node:
        # An anchor is known only once its value is complete, so none can hold itself.
        node = self._anchors.get(event.anchor)
        if node is None:
            name = shortened(event.anchor)
            return self._refuse(
                event, SpecCode.YAML_SYNTAX, f"There is no anchor &{name} above this"
            )
        return node

    def _counted(self, event: Any, nodes: int) -> None:
        self._count += nodes
        if self._count > MOST_NODES:
            message = f"More than {MOST_NODES:,} values, those repeated by aliases included"
            self._refuse(event, SpecCode.TOO_LARGE, message)

    def _scalar(self, event: Any) -> Node:
        text: str = event.value
        if has_odd_character(text):
            message = "A value holds a control character, or half of a character"
            self._refuse(event, SpecCode.BAD_CHARACTER, message)
        value = plain_value(text) if event.implicit[0] else text
        span = (event.start_mark.index, event.end_mark.index)
        return Node(value, _line(event), text, span)

    def _sequence(self, event: Any, path: str, depth: int) -> Node:
        items: list[Node] = []
        while not isinstance(each := self._next(), yaml.SequenceEndEvent):
            where = f"{path}[{len(items)}]"
            self._note_value(where, each)
            items.append(self._node(each, where, depth + 1))
        self._note_collection(path, event, each)
        return Node(tuple(items), _line(event), size=1 + sum(item.size for item in items))

    def _mapping(self, event: Any, path: str, depth: int) -> Node:
        entries: dict[str, Entry] = {}
        while not isinstance(each := self._next(), yaml.MappingEndEvent):
            key = self._key(each)
            where, value = join(path, key), self._next()
            self._findings.spans.keys[where] = _span(each)
            self._note_value(where, value)
            node = self._node(value, where, depth + 1)
            if key in entries:
                self._doubled(where, entries[key], _line(each))
            entries[key] = Entry(_line(each), node)
        self._note_collection(path, event, each)
        size = 1 + sum(1 + entry.node.size for entry in entries.values())
        return Node(entries, _line(event), size=size)

    def _note_value(self, path: str, event: Any) -> None:
        """Keep the span of a value that is on one line."""
        is_short = isinstance(event, yaml.ScalarEvent) and event.style not in {"|", ">"}
        if is_short and _span(event).end_column is not None:
            self._findings.spans.values[path] = _span(event)

    def _note_collection(self, path: str, start: Any, end: Any) -> None:
        """Keep the span of a list or mapping in brackets on one line, else where it begins."""
        if path:
            span = _span(start)
            is_short = start.flow_style and start.start_mark.line == end.end_mark.line
            end_column = end.end_mark.column + 1 if is_short else None
            self._findings.spans.values[path] = replace(span, end_column=end_column)

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse_feature(event, "Keys must be plain words")
        node = self._node(event, "", 0)
        if node.text == "<<" and node.value == "<<" and event.implicit[0]:
            self._refuse_feature(event, "Merge keys (<<) are not read; write the keys out")
        return node.text

    def _doubled(self, path: str, first: Entry, line: int) -> None:
        message = f"{path} is given twice; the first time on line {first.line}."
        self._findings.add(path, SpecCode.DUPLICATE_KEY, message, line=line)

    def _refuse_feature(self, event: Any, message: str) -> NoReturn:
        self._refuse(event, SpecCode.YAML_FEATURE, message)

    def _refuse(self, event: Any, code: SpecCode, message: str) -> NoReturn:
        self._findings.spans.values[""] = _span(event)
        self._findings.refuse(code, f"{message}.", _line(event))


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1


def _span(event: Any) -> Span:
    start, end = event.start_mark, event.end_mark
    is_short = start.line == end.line and start.column < end.column
    return Span(start.line + 1, start.column + 1, end.column + 1 if is_short else None)
