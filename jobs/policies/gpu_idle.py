"""Idle GPUs of a job: every one of them, on every host, for so many minutes. Pure.

Unknown use is never taken for idleness: a host without GPUs, a GPU that does not report how
busy it is, a host without a recent report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.policies.limits import Limit

# No job can request less.
LEAST = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class GpuRule:
    """A job that has all its GPUs below so many per cent for so many minutes is to end.

    `limit`: an administrator's, in minutes, which nothing goes beyond.
    """

    below: int
    requested_minutes: int
    limit: Limit | None = None

    @property
    def minutes(self) -> int:
        """The minutes that count."""
        return (
            self.requested_minutes
            if self.limit is None
            else min(self.requested_minutes, self.limit.value)
        )


@dataclass(frozen=True, slots=True)
class GpuHost:
    """A host's last report, and since when all its GPUs are idle.

    `idle_since` is None while one of them works, and while that is not known.
    """

    reported_at: datetime
    idle_since: datetime | None


def after_sample(
    before: GpuHost | None,
    at: datetime,
    uses: Sequence[float | None],
    below: float,
    late: timedelta,
) -> GpuHost:
    """Return the state of a host after a sample with the `uses` of its GPUs, in per cent.

    A sample that comes later than `late` after the last one says nothing of the time between.
    """
    if not uses or any(use is None or use >= below for use in uses):
        return GpuHost(at, None)
    if before is None or before.idle_since is None or at - before.reported_at > late:
        return GpuHost(at, at)
    return GpuHost(at, before.idle_since)


def idle_for(
    hosts: Iterable[GpuHost], *, begun_at: datetime, now: datetime, late: timedelta
) -> timedelta | None:
    """Return how long the GPUs of all hosts have been idle since `run` began; None: some are not,
    or may not be.
    """
    latest = begun_at
    for host in hosts:
        if host.idle_since is None or now - host.reported_at > late:
            return None
        latest = max(latest, host.idle_since)
    return now - latest
