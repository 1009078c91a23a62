"""The events of every cluster and job, in `<state>/events.ndjson`, and what must not happen.

An event is {at, event, cluster, hash, ...}. Clusters: launch_begun, up, launch_failed,
launch_interrupted, stopped, started, node_killed, preempted, gone. Jobs: job_submitted, job_ended.
The server: serving, fault.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

Event = dict[str, Any]
FILE_NAME = "events.ndjson"


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One life of one cluster, from the first node to the last."""

    cluster: str
    hash: str
    began_at: float
    ended_at: float | None
    jobs: frozenset[str]

    def overlaps(self, other: Incarnation) -> bool:
        """Whether both had machines at one time."""
        first, second = sorted((self, other), key=lambda each: each.began_at)
        return first.ended_at is None or second.began_at < first.ended_at


class Witness:
    """The events below a folder of state; every process may append and read them."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE_NAME

    def note(self, event: str, **more: Any) -> None:
        """Add an event. One write, so lines of several processes never mix."""
        line = json.dumps({"at": round(time.time(), 3), "event": event, **more}) + "\n"
        fd = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)

    def events(self, event: str | None = None, **equal: Any) -> list[Event]:
        """Return all events in order, or those of one name with these values."""
        wanted = {**equal, **({"event": event} if event else {})}
        return [
            each
            for each in self._read()
            if all(each.get(name) == value for name, value in wanted.items())
        ]

    def incarnations(self) -> list[Incarnation]:
        """List every incarnation of every cluster."""
        events = self.events()
        found = []
        for began in (each for each in events if each["event"] == "launch_begun"):
            own = [each for each in events if each.get("hash") == began["hash"]]
            ended = next((each["at"] for each in own if each["event"] == "gone"), None)
            jobs = frozenset(each["job_name"] for each in own if each.get("job_name"))
            if not any(one.hash == began["hash"] for one in found):
                found.append(Incarnation(began["cluster"], began["hash"], began["at"], ended, jobs))
        return found

    def problems(self) -> list[str]:
        """List the violations.

        These are two clusters of one attempt at a time, a cluster that remains, and a job that was
        submitted twice.
        """
        lives = self.incarnations()
        remaining = [f"{one.cluster} ({one.hash}) remains" for one in lives if one.ended_at is None]
        return [*remaining, *self.simultaneous(), *self.doubles()]

    def simultaneous(self) -> list[str]:
        """List the clusters of one attempt that existed at the same time."""
        return [
            f"two clusters at a time for {set(one.jobs & other.jobs)}"
            for one, other in combinations(self.incarnations(), 2)
            if one.jobs & other.jobs and one.overlaps(other)
        ]

    def doubles(self) -> list[str]:
        """List the jobs that were submitted more than once."""
        names = Counter(each["job_name"] for each in self.events("job_submitted"))
        return [f"{name} was submitted {count} times" for name, count in names.items() if count > 1]

    def _read(self) -> Iterator[Event]:
        if not self._path.exists():
            return
        for line in self._path.read_text().splitlines():
            yield json.loads(line)
