"""The typed parameters of a template: their keys, their JSON Schema, and the check of a value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.from_yaml import has_odd_character
from monarch_client.spec.shapes import Either, Flag, KeyName, Listing, OneOf, Schema, Text, Written
from monarch_client.spec.shapes import Mapping as MappingShape
from monarch_client.spec.tables import Key, Table
from monarch_client.spec.yaml_text import in_one_line

try:
    import re2
except ImportError:  # a client without the server's packages: the portal checks patterns
    re2 = None

STRING, INTEGER, NUMBER, BOOLEAN, LIST = "string", "integer", "number", "boolean", "list"
TYPES = (STRING, INTEGER, NUMBER, BOOLEAN, LIST)
NAME_PATTERN = r"[a-z][a-z0-9_]{0,39}"
MOST_PARAMETERS = 50
MOST_CHARACTERS = 16_000
MOST_ITEMS = 1_000
_LARGEST = 2**53
_PATTERN_BYTES = 256 * 1024  # of a compiled pattern
# What YAML itself takes for a whole number, and what else a form or a command may send.
_WHOLE = re.compile(r"[-+]?[0-9](_?[0-9]){0,15}")
_YES, _NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0", ""}

_PARAMETER = Table(
    (
        Key("type", f"One of {', '.join(TYPES)}.", OneOf(TYPES), INTEGER, default=STRING),
        Key("title", "The label of its field.", Text(most_bytes=200), "Nodes"),
        Key("about", "A sentence below its field.", Text(most_bytes=1000), "Machines of the job."),
        Key(
            "default",
            "Its value if none is given; without one it is required.",
            Either((Written(), Listing(Written(), most=MOST_ITEMS))),
            2,
        ),
        Key("choices", "The values of a string.", Listing(Written(), least=1), ["bf16", "fp32"]),
        Key("minimum", "The least value of a number, or number of entries of a list.", example=1),
        Key("maximum", "The most, likewise.", example=64),
        Key("pattern", "What a string matches, of RE2.", Text(most_bytes=500), "[a-z]+"),
        Key("multiline", "Gives a string a field of several lines.", Flag(), True),
    ),
    words="a mapping with type, title, about, default and limits",
)
PARAMETERS = MappingShape(
    "a mapping of parameter names to their types",
    KeyName("a name of small letters, digits and _, a letter first", NAME_PATTERN),
    _PARAMETER,
    most=MOST_PARAMETERS,
    null_values=True,
)


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """A value of a parameter's type, and its text as it was written: 3e-4, or 1_000."""

    value: Any
    text: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One typed parameter of a template. `default`: None where a value is required."""

    name: str
    type: str = STRING
    title: str = ""
    about: str = ""
    default: ParameterValue | None = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    multiline: bool = False

    @property
    def is_required(self) -> bool:
        """Whether a value must be given."""
        return self.default is None

    @property
    def limits(self) -> str:
        """Return its range for messages, such as "from 1 to 64"; empty without one."""
        low, high = self.minimum, self.maximum
        if low is not None and high is not None:
            return f" from {_number(low)} to {_number(high)}"
        if low is not None:
            return f" of at least {_number(low)}"
        return "" if high is None else f" of at most {_number(high)}"

    def schema(self) -> Schema:
        """Return the parameter as JSON Schema."""
        bounds = _BOUNDS.get(self.type)
        optional: Schema = {
            "title": self.title,
            "description": self.about,
            "enum": list(self.choices),
            "pattern": f"^(?:{self.pattern})$" if self.pattern else "",
            "format": "multiline" if self.multiline else "",
        }
        if bounds:
            optional |= {bounds[0]: self.minimum, bounds[1]: self.maximum}
        kind: Schema = {"type": "array", "items": {"type": "string"}}
        kind = kind if self.type == LIST else {"type": self.type}
        if self.default is not None:
            # An empty default says that the parameter may be left out.
            kind["default"] = self.default.value
        return kind | {key: value for key, value in optional.items() if value not in (None, "", [])}

    def read(self, value: Any) -> ParameterValue:
        """Return `value`, or the text of a form or command, as a value of the type.

        ValueError: the sentence that says what it must be.
        """
        found = _READERS[self.type](self, value)
        if found is None or not self._is_within(found):
            raise ValueError(f"{self.name} must be {self._wants()}.")
        is_written = isinstance(value, str) and self.type in {INTEGER, NUMBER}
        return ParameterValue(found, value.strip() if is_written else _text_of(found))

    def _wants(self) -> str:
        if self.type == STRING and self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type == STRING and self.pattern:
            return f"text that matches {self.pattern}"
        return f"{_WORDS[self.type]}{self.limits}"

    def _is_within(self, value: Any) -> bool:
        if self.type == STRING:
            pattern = _compiled(self.pattern)
            matches = pattern is None or pattern.fullmatch(value) is not None
            return matches and (not self.choices or value in self.choices)
        if self.type == BOOLEAN:
            return True
        size = len(value) if self.type == LIST else value
        low, high = self.minimum, self.maximum
        return (low is None or size >= low) and (high is None or size <= high)


def parameters_in(values: Mapping[str, Any], findings: Findings) -> tuple[Parameter, ...]:
    """Return the parameters of a header that `PARAMETERS` has read, and check each definition."""
    found = []
    for name, content in values.items():
        path = join("parameters", name)
        fields = dict(content) if isinstance(content, dict) else {}
        default = fields.pop("default", None)
        parameter = Parameter(
            **{**fields, "name": name, "choices": tuple(fields.get("choices") or ())}
        )
        problem = _complaint(parameter)
        try:
            if default is not None and not problem:
                parameter = replace(parameter, default=parameter.read(default))
        except ValueError as error:
            problem = f"its default does not fit: {error}"
        if problem:
            findings.add(path, SpecCode.BAD_VALUE, f"{path}: {problem}")
        found.append(parameter)
    return tuple(found)


def _complaint(parameter: Parameter) -> str:
    """Return what is wrong with a definition; empty if nothing is."""
    limits = {"minimum": parameter.minimum, "maximum": parameter.maximum}
    for name, limit in limits.items():
        if limit is not None and (type(limit) not in {int, float} or not math.isfinite(limit)):
            return f"{name} must be a number."
        if limit is not None and parameter.type not in _BOUNDS:
            return f"{name} is for integer, number and list."
    for name in ("choices", "pattern", "multiline"):
        if getattr(parameter, name) and parameter.type != STRING:
            return f"{name} is for type string."
    try:
        _compiled(parameter.pattern)
    except ValueError as error:
        return str(error)
    return ""


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """Return the pattern for RE2, whose time grows with the value alone; None: check nothing.

    ValueError: RE2 does not take it.
    """
    if not pattern or re2 is None:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"pattern is not a regular expression of RE2: {reason}.") from None


def _text(_: Parameter, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).replace("\r\n", "\n")
    return None if len(text) > MOST_CHARACTERS or has_odd_character(text) else text


def _integer(_: Parameter, value: Any) -> int | None:
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and abs(value) <= _LARGEST else None


def _real(_: Parameter, value: Any) -> float | int | None:
    if isinstance(value, str) and len(value) <= MOST_CHARACTERS:
        try:
            value = float(value) if re.search(r"[.eE]", value) else int(value)
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) <= _LARGEST else None


def _flag(_: Parameter, value: Any) -> bool | None:
    if isinstance(value, str) and value.lower() in _YES | _NO:
        return value.lower() in _YES
    return value if isinstance(value, bool) else None


def _listed(parameter: Parameter, value: Any) -> list[str] | None:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or len(items) > MOST_ITEMS:
        return None
    found: list[str] = []
    for item in items:
        text = _text(parameter, item)
        if text is None:
            return None
        found += [text.strip()] if text.strip() else []
    return found


def _number(value: float) -> str:
    return f"{value:.15g}"


def _text_of(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return value if isinstance(value, str) else in_one_line(value)


_READERS: dict[str, Callable[[Parameter, Any], Any]] = {
    STRING: _text,
    INTEGER: _integer,
    NUMBER: _real,
    BOOLEAN: _flag,
    LIST: _listed,
}
_WORDS = {
    STRING: f"text of at most {MOST_CHARACTERS:,} characters",
    INTEGER: "a whole number",
    NUMBER: "a number",
    BOOLEAN: "true or false",
    LIST: "a list of values, separated by commas",
}
_BOUNDS = {
    INTEGER: ("minimum", "maximum"),
    NUMBER: ("minimum", "maximum"),
    LIST: ("minItems", "maxItems"),
}
