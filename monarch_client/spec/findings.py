"""The findings of a reader of specifications: the errors, and the line of each key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import Enum
from typing import NoReturn

from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.nodes import Node
from monarch_client.spec.spans import Spans

# Enough to fix a file by; a hostile one with ten thousand wrong keys must stay cheap.
MOST_ERRORS = 100
SHOWN_LENGTH = 60


class SpecCode(str, Enum):
    """The reason why a specification was refused: stable codes for programs."""

    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    YAML_SYNTAX = "yaml_syntax"
    YAML_FEATURE = "yaml_feature"
    BAD_CHARACTER = "bad_character"
    DUPLICATE_KEY = "duplicate_key"
    UNKNOWN_KEY = "unknown_key"
    MISSING = "missing"
    WRONG_TYPE = "wrong_type"
    BAD_VALUE = "bad_value"
    CONFLICT = "conflict"
    ADMIN_ONLY = "admin_only"
    SET_BY_PORTAL = "set_by_portal"
    NOT_ENFORCED = "not_enforced"
    LOCAL_PATH = "local_path"
    # Only a portal can find these, when a job is sent to it.
    WRONG_PROJECT = "wrong_project"
    UNKNOWN_UPLOAD = "unknown_upload"
    UNKNOWN_SECRET = "unknown_secret"  # noqa: S105 - a code
    UNKNOWN_CLUSTER = "unknown_cluster"
    UNKNOWN_JOB = "unknown_job"
    DEPENDENCY_CYCLE = "dependency_cycle"
    DEPENDENCY_FAILED = "dependency_failed"
    UNKNOWN_QUEUE = "unknown_queue"
    OVER_LIMIT = "over_limit"
    UNSUPPORTED_BY_BACKEND = "unsupported_by_backend"


_ABOUT_KEYS = {
    SpecCode.UNKNOWN_KEY,
    SpecCode.DUPLICATE_KEY,
    SpecCode.ADMIN_ONLY,
    SpecCode.SET_BY_PORTAL,
    SpecCode.NOT_ENFORCED,
}


class Findings:
    """A collection of errors and lines while a specification is walked."""

    def __init__(self, *, admin: bool = False) -> None:
        self.admin = admin
        self.errors: list[SpecError] = []
        self.lines: dict[str, int] = {}
        self.spans = Spans()

    @property
    def is_full(self) -> bool:
        """Whether so many errors were found that more would not help."""
        return len(self.errors) >= MOST_ERRORS

    def add(
        self,
        path: str,
        code: SpecCode,
        message: str,
        *,
        line: int | None = None,
        suggestion: str | None = None,
    ) -> None:
        """Note an error; its line is that of `path` when none is given."""
        if self.is_full:
            return
        # The shape of a value passes its line; a bad name in a mapping is that of the key.
        is_key = code in _ABOUT_KEYS or (line is None and code is SpecCode.BAD_VALUE)
        line = line if line is not None else self.line_of(path)
        span = self.spans.of(path, line, is_key=is_key)
        column, end = (span.column, span.end_column) if span else (None, None)
        self.errors.append(
            SpecError(path, line, code.value, message, suggestion, column=column, end_column=end)
        )

    def refuse(
        self, code: SpecCode, message: str, line: int | None = None, *, path: str = ""
    ) -> NoReturn:
        """Give up: nothing sensible can be said about the rest."""
        self.add(path, code, message, line=line)
        raise InvalidSpecErrors(self.errors)

    def wrong_type(self, node: Node, path: str, wants: str, *, quoted: bool = False) -> None:
        """Note that the value is of another kind than `wants` says.

        `quoted`: in quotes it would fit.
        """
        message = f"{name_of(path)} must be {wants}, not {shown(node)}."
        if quoted:
            message += f' Write it in quotes: "{node.text}".'
        self.add(path, SpecCode.WRONG_TYPE, message, line=node.line)

    def bad_value(self, node: Node, path: str, wants: str) -> None:
        """Note that the value is of the right kind but none of those that `wants` allows."""
        message = f"{name_of(path)} must be {wants}, not {shown(node)}."
        self.add(path, SpecCode.BAD_VALUE, message, line=node.line)

    def line_of(self, path: str) -> int | None:
        """Return the line of `path`, or of the nearest key around it."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path) or None

    def raise_if_any(self) -> None:
        """Raise InvalidSpecErrors with all errors in the order of the file, if there are any."""
        if self.errors:
            raise InvalidSpecErrors(sorted(self.errors, key=lambda error: error.line or 0))


def shown(node: Node) -> str:
    """Return the value as a message shows it: short, or its kind if it has no short form."""
    value = node.value
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, tuple):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    text = node.text or str(value)
    return repr(shortened(text)) if isinstance(value, str) else shortened(text)


def shortened(text: str) -> str:
    """Return `text` on one line, cut where it gets long."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_LENGTH else line[: SHOWN_LENGTH - 1] + "…"


def name_of(path: str) -> str:
    """Return the name of `path` in a message."""
    return path or "The specification"


def join(path: str, key: str) -> str:
    """Return the path of `key` below `path`."""
    key = shortened(key)
    return f"{path}.{key}" if path else key


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known word for which `word` is most likely a typing error."""
    # Comparing is quadratic in the length, and long keys are not typing errors of known ones.
    close = difflib.get_close_matches(word[:SHOWN_LENGTH].lower(), list(known), n=1, cutoff=0.6)
    return close[0] if close else None
