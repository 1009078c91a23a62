"""Who fills the gap before a place that is held: the larger ones first, in turn among their equals.

A small job fits a small gap too, a large one does not; so a machine on which the small ones wait
until the large ones have found their gaps is fuller (first fit decreasing, as in packing bins).
Sizes are compared by classes, each about 1.4 times (the root of 2) the one below. Within a class
the turn decides, so that projects go on getting what their shares say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jobs.scheduling.snapshot import QueuedJob, Snapshot

_CLASSES_PER_DOUBLING = 2
_NONE = -math.inf


def largest_first(waiting: Sequence[QueuedJob], snapshot: Snapshot) -> Iterable[int]:
    """The places in `waiting`, which is in turn, in the order in which those there fill gaps.

    A higher rank comes before a lower one whatever the size, and so does, of one project, who has
    waited longer than its pool's patience, and a higher priority.
    """
    sizes = _lifted(waiting, snapshot)
    keys = [(-job.rank, -size) for job, size in zip(waiting, sizes, strict=True)]
    # Sorting keeps the turn of those that are equal.
    return sorted(range(len(waiting)), key=keys.__getitem__)


def _lifted(waiting: Sequence[QueuedJob], snapshot: Snapshot) -> list[float]:
    """Of each its class, or the largest of those that must not overtake it, if that is larger."""
    classes = {shape: _class_of(shape.units) for shape in {job.shape for job in waiting}}
    sizes: list[float] = [classes[job.shape] for job in waiting]
    # Of each project, from its last turn on: what is compared before size, the largest class with
    # less of it, and with just as much.
    behind: dict[tuple[int, int], tuple[tuple[bool, int], float, float]] = {}
    nobody: tuple[tuple[bool, int], float, float] = ((False, -1), _NONE, _NONE)
    for place in range(len(waiting) - 1, -1, -1):
        job, size = waiting[place], sizes[place]
        whose, own = (job.project_id, job.rank), (snapshot.is_patient(job), job.priority)
        before, below, equal = behind.get(whose, nobody)
        if own != before:
            below, equal = (max(below, equal) if own > before else _NONE), _NONE
        if own != before or size > equal:
            behind[whose] = own, below, max(equal, size)
        if below > size:
            sizes[place] = below
    return sizes


def _class_of(units: float) -> int:
    return math.floor(_CLASSES_PER_DOUBLING * math.log2(max(1.0, units)))
