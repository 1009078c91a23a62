"""Errors of REST (RFC 9457)."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, UnsetType


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemRow:
    """One thing that is wrong with a request. `position`: only of a pattern, in characters from 0.

    Only of a specification: `line`, `column` and `end_column`, from 1, and `suggestion`.
    """

    path: str
    code: str
    message: str
    line: int | UnsetType | None = UNSET
    column: int | UnsetType | None = UNSET
    end_column: int | UnsetType | None = UNSET
    suggestion: str | UnsetType | None = UNSET
    position: int | UnsetType | None = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Every error. `code` is stable, `detail` says what to do."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[ProblemRow] | UnsetType = UNSET
