"""Answers that are another answer with further fields."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def extended(kind: type[T], row: Any, **further: Any) -> T:
    """Return `row`, of a base class of `kind`, as a `kind` with its `further` fields."""
    return kind(**{each.name: getattr(row, each.name) for each in fields(row)}, **further)
