"""The rules for a job's events: a legal walk from QUEUED, with one end at most."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from jobs.lifecycle import MOVES
from jobs.statuses import FINAL_STATUSES, EventKind, JobStatus

Rows = list[dict[str, Any]]


def walked(events: Rows) -> list[JobStatus]:
    """Return the statuses a job has been in, in order."""
    moves = [event for event in events if event["kind"] == EventKind.STATUS]
    return [JobStatus.QUEUED, *(JobStatus(event["new_status"]) for event in moves)]


def faults_of(events: Rows) -> list[str]:
    """Describe what is wrong with a job's history."""
    return [
        *_faults_of_walk(events),
        *_faults_of_order(events),
        *_faults_of_attempts(events),
    ]


def _faults_of_walk(events: Rows) -> list[str]:
    faults = []
    moves = [event for event in events if event["kind"] == EventKind.STATUS]
    for before, event in zip(walked(events), moves, strict=False):
        if event["old_status"] != before:
            faults.append(f"event {event['id']} leaves {event['old_status']}, not {before}")
    for old, new in pairwise(walked(events)):
        if new not in MOVES.get(old, frozenset()):
            faults.append(f"no edge leads from {old} to {new}")
    ends = [status for status in walked(events) if status in FINAL_STATUSES]
    if len(ends) > 1:
        faults.append(f"it ended {len(ends)} times: {', '.join(ends)}")
    return faults


def _faults_of_order(events: Rows) -> list[str]:
    ids = [event["id"] for event in events]
    faults = [] if ids == sorted(set(ids)) else ["ids of events do not grow"]
    if not events or events[0]["verb"] not in {"submit", "rerun"}:
        faults.append("its history does not begin with how it came about")
    return faults


def _faults_of_attempts(events: Rows) -> list[str]:
    numbers = [event["attempt"] for event in events if event["attempt"] is not None]
    faults = [] if numbers == sorted(numbers) else [f"attempts go back: {numbers}"]
    starts = [event["attempt"] for event in events if event["new_status"] == JobStatus.PROVISIONING]
    if starts != list(range(1, len(starts) + 1)):
        faults.append(f"attempts that started: {starts}")
    return faults
