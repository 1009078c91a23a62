"""The columns of the keys and values of a text, with which errors mark what they are about."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """A part of one line. Columns count characters from 1; the one at `end_column` is outside.

    `end_column`: None where only the begin is known.
    """

    line: int
    column: int
    end_column: int | None


@dataclass(slots=True)
class Spans:
    """The spans of keys, and of values that are on one line, by their paths."""

    keys: dict[str, Span] = field(default_factory=dict)
    values: dict[str, Span] = field(default_factory=dict)

    def of(self, path: str, line: int | None, *, is_key: bool = False) -> Span | None:
        """Return the span on `line` of the value at `path`, else of its key; None: none is known.

        `is_key`: the error is about the key itself.
        """
        found = [] if is_key else [self.values.get(path)]
        found.append(self.keys.get(path))
        return next((span for span in found if span is not None and span.line == line), None)
