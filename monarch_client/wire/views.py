"""Saved views of the job table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """A named filter and order of a project's jobs."""

    id: int
    name: str
    query: Annotated[str, Meta(description="As in the address of the table.")]
    is_shared: Annotated[bool, Meta(description="All members see it.")]
    owner: str
    can_delete: Annotated[bool, Meta(description="Whether you may delete it.")]
    url: Annotated[str, Meta(description="The table with this view.")]
