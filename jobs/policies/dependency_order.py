"""The order in which jobs that need one another are made, and the circles among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from graphlib import CycleError, TopologicalSorter


def order_of(needs: Mapping[int, Set[int]]) -> list[int]:
    """Sort the keys, each after those it needs; otherwise stable. ValueError: a circle."""
    sorter = TopologicalSorter({key: sorted(needs[key]) for key in needs})
    try:
        return list(sorter.static_order())
    except CycleError as error:
        raise ValueError("circle") from error


def circle_in(needs: Mapping[int, Set[int]]) -> Sequence[int]:
    """Find one circle, each needing the next and the last the first; empty if there is none."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        found: list[int] = error.args[1]
        # It comes with the first repeated at the end, each before the one that needs it.
        return found[:0:-1]
    return ()
