"""The shapes a value can have. Each reads a node, names what it expects, and describes
itself as JSON Schema: so parser, messages, schema and reference cannot drift apart.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from monarch_client.spec.findings import Findings, SpecCode, join, name_of, nearest, shortened
from monarch_client.spec.nodes import Node

Schema = dict[str, Any]


class Shape(ABC):
    """The shape that a value must have."""

    takes: ClassVar[tuple[type, ...]] = ()

    @property
    @abstractmethod
    def wants(self) -> str:
        """The end of the sentence "num_nodes must be ..."."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the shape as JSON Schema."""

    @abstractmethod
    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        """Return the value in normal form; the node's type is one that `takes` names."""

    def fits(self, node: Node) -> bool:
        """Whether the node is of a type this shape can read at all."""
        return type(node.value) in self.takes

    def read(self, node: Node, path: str, findings: Findings) -> Any:
        """Return the value in normal form; meaningless if there are errors in `findings`."""
        if not self.fits(node):
            findings.wrong_type(node, path, self.wants, quoted=self._fits_in_quotes(node))
            return None
        return self._read(node, path, findings)

    def _fits_in_quotes(self, node: Node) -> bool:
        """Whether YAML took for a number or a flag what would do as text."""
        quoted = Node(node.text, node.line, node.text)
        if not isinstance(node.value, bool | int | float) or not self.fits(quoted):
            return False
        trial = Findings()
        self.read(quoted, "", trial)
        return not trial.errors


@dataclass(frozen=True)
class Text(Shape):
    """Text, perhaps of a given form. `words` describes the form to people."""

    words: str = "text"
    pattern: str = ""
    most_bytes: int = 4096
    takes: ClassVar[tuple[type, ...]] = (str,)

    @property
    def wants(self) -> str:
        return self.words

    def schema(self) -> Schema:
        # maxLength counts characters, the parser bytes: the schema is the more generous.
        schema: Schema = {"type": "string", "maxLength": self.most_bytes}
        return schema | ({"pattern": f"^(?:{self.pattern})$"} if self.pattern else {})

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        text: str = node.value
        if len(text.encode()) > self.most_bytes:
            message = f"{name_of(path)} is longer than {self.most_bytes:,} bytes."
            findings.add(path, SpecCode.TOO_LARGE, message, line=node.line)
        elif self.pattern and not re.fullmatch(self.pattern, text):
            findings.bad_value(node, path, self.wants)
        return text


@dataclass(frozen=True)
class Written(Shape):
    """A text, a number or a flag, as it was written: `1.10` stays `1.10`."""

    takes: ClassVar[tuple[type, ...]] = (str, int, float, bool)

    @property
    def wants(self) -> str:
        return "text"

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        return node.text


@dataclass(frozen=True)
class OneOf(Shape):
    """One of a few words, in any case; the normal form is as listed."""

    choices: tuple[str, ...]
    takes: ClassVar[tuple[type, ...]] = (str,)

    @property
    def wants(self) -> str:
        return "one of " + ", ".join(self.choices)

    def schema(self) -> Schema:
        # JSON Schema has no way to ignore case, so each letter lists both of its cases.
        pattern = f"^(?:{'|'.join(map(_any_case, self.choices))})$"
        return {"type": "string", "pattern": pattern, "x-choices": list(self.choices)}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        by_lower = {choice.lower(): choice for choice in self.choices}
        choice = by_lower.get(node.value.lower())
        if choice is None:
            message = f"{name_of(path)} must be {self.wants}, not {shortened(node.value)!r}."
            guess = nearest(node.value, by_lower)
            suggestion = by_lower[guess] if guess else None
            findings.add(path, SpecCode.BAD_VALUE, message, line=node.line, suggestion=suggestion)
        return choice


@dataclass(frozen=True)
class Whole(Shape):
    """A whole number in a range."""

    least: int = 0
    most: int | None = None
    takes: ClassVar[tuple[type, ...]] = (int,)

    @property
    def wants(self) -> str:
        if self.most is None:
            return f"a whole number of at least {self.least}"
        return f"a whole number from {self.least} to {self.most}"

    def schema(self) -> Schema:
        schema: Schema = {"type": "integer", "minimum": self.least}
        return schema | ({} if self.most is None else {"maximum": self.most})

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        if node.value < self.least or (self.most is not None and node.value > self.most):
            findings.bad_value(node, path, self.wants)
        return node.value


@dataclass(frozen=True)
class Number(Shape):
    """A number, whole or not, above zero, and at most `most` if that is given."""

    most: int | None = None
    takes: ClassVar[tuple[type, ...]] = (int, float)

    @property
    def wants(self) -> str:
        limit = "" if self.most is None else f", at most {self.most:,}"
        return f"a number above 0{limit}"

    def schema(self) -> Schema:
        schema: Schema = {"type": "number", "exclusiveMinimum": 0}
        return schema | ({} if self.most is None else {"maximum": self.most})

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        if node.value <= 0 or (self.most is not None and not node.value <= self.most):
            findings.bad_value(node, path, self.wants)
        return node.value


@dataclass(frozen=True)
class Flag(Shape):
    """Yes or no."""

    takes: ClassVar[tuple[type, ...]] = (bool,)

    @property
    def wants(self) -> str:
        return "true or false"

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        return node.value


@dataclass(frozen=True)
class Anything(Shape):
    """Any value, passed on to SkyPilot unchanged."""

    takes: ClassVar[tuple[type, ...]] = (type(None), bool, int, float, str, tuple, dict)

    @property
    def wants(self) -> str:
        return "anything SkyPilot accepts there"

    def schema(self) -> Schema:
        return {}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        if isinstance(node.value, dict):
            return {k: self._read(e.node, path, findings) for k, e in node.value.items()}
        if isinstance(node.value, tuple):
            return [self._read(item, path, findings) for item in node.value]
        return node.value


@dataclass(frozen=True)
class Listing(Shape):
    """A list of values of one shape."""

    item: Shape
    most: int = 100
    least: int = 0
    takes: ClassVar[tuple[type, ...]] = (tuple,)

    @property
    def wants(self) -> str:
        return f"a list of {f'{self.least} to' if self.least else 'at most'} {self.most} entries"

    def schema(self) -> Schema:
        return {
            "type": "array",
            "items": self.item.schema(),
            "minItems": self.least,
            "maxItems": self.most,
        }

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        items: tuple[Node, ...] = node.value
        if not self.least <= len(items) <= self.most:
            findings.bad_value(node, path, self.wants)
        return [self.item.read(item, f"{path}[{i}]", findings) for i, item in enumerate(items)]


@dataclass(frozen=True)
class KeyName:
    """The rule for the free keys of a mapping; `complaint` returns what else is wrong."""

    words: str
    pattern: str
    complaint: Callable[[str], str | None] = lambda _: None


@dataclass(frozen=True)
class Mapping(Shape):
    """Free keys of one form, with values of one shape."""

    words: str
    key: KeyName
    value: Shape
    most: int = 1000
    null_values: bool = False
    takes: ClassVar[tuple[type, ...]] = (dict,)

    @property
    def wants(self) -> str:
        return self.words

    def schema(self) -> Schema:
        value = self.value.schema()
        return {
            "type": "object",
            "propertyNames": {"pattern": f"^(?:{self.key.pattern})$"},
            "additionalProperties": nullable(value) if self.null_values else value,
            "maxProperties": self.most,
        }

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        if len(node.value) > self.most:
            message = f"{name_of(path)} has more than {self.most} entries."
            findings.add(path, SpecCode.TOO_LARGE, message, line=node.line)
        values: dict[str, Any] = {}
        for name, entry in node.value.items():
            where = join(path, name)
            findings.lines[where] = entry.line or 0
            self._check_key(name, where, findings)
            keep_null = self.null_values and entry.node.value is None
            values[name] = None if keep_null else self.value.read(entry.node, where, findings)
        return values

    def _check_key(self, name: str, path: str, findings: Findings) -> None:
        if not re.fullmatch(self.key.pattern, name):
            message = f"{path}: {shortened(name)!r} is not {self.key.words}."
            findings.add(path, SpecCode.BAD_VALUE, message)
        elif complaint := self.key.complaint(name):
            findings.add(path, SpecCode.BAD_VALUE, f"{path}: {complaint}")


@dataclass(frozen=True)
class Either(Shape):
    """One of several shapes, told apart by the type of the value."""

    options: tuple[Shape, ...]

    @property
    def wants(self) -> str:
        return ", or ".join(option.wants for option in self.options)

    def fits(self, node: Node) -> bool:
        return any(option.fits(node) for option in self.options)

    def schema(self) -> Schema:
        return {"anyOf": [option.schema() for option in self.options]}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        option = next(option for option in self.options if option.fits(node))
        return option.read(node, path, findings)


def _any_case(word: str) -> str:
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else re.escape(c) for c in word)


def nullable(schema: Schema) -> Schema:
    """Return the schema with null allowed: a key without a value counts as not given."""
    if isinstance(schema.get("type"), str):
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [*schema["anyOf"], {"type": "null"}]} if "anyOf" in schema else schema
