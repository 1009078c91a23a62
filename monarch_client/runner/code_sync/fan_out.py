"""The tree in which code spreads over the ranks of an attempt: rank 0 is its root."""

from __future__ import annotations

FAN_OUT = 8


def parent_of(rank: int) -> int:
    """Return the rank from which another one, not 0, gets its code."""
    return (rank - 1) // FAN_OUT


def children_of(rank: int, ranks: int) -> range:
    """Return those of so many ranks that get their code from this one."""
    first = rank * FAN_OUT + 1
    return range(min(first, ranks), min(first + FAN_OUT, ranks))


def ancestors_of(rank: int) -> list[int]:
    """Return the ranks from the parent to rank 0."""
    ancestors = []
    while rank:
        rank = parent_of(rank)
        ancestors.append(rank)
    return ancestors
