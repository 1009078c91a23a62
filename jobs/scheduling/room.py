"""The free capacity while a plan is made, and what a start takes of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from jobs.scheduling.limits import Limit
from jobs.scheduling.reservation import Reservations
from jobs.scheduling.snapshot import QueuedJob, RunningJob, Snapshot


def ending_within(key: str, what: str, running: Iterable[RunningJob]) -> float:
    """Return how much of a resource is being given back within the limit `key`.

    A job whose last attempt has just ended is there twice: for its machines, and for another try.
    """
    amounts: dict[int, float] = {}
    for each in running:
        if each.is_leaving and key in each.shape.limits:
            amount = each.shape.amount(what)
            amounts[each.job_id] = max(amount, amounts.get(each.job_id, 0.0))
    return sum(amounts.values())


class Room:
    """The free capacity. It only ever shrinks: a job that did not fit once never will.

    `limits` by their keys, with their usage; `running` are the jobs that hold machines, also those
    that the plan has started; `reserved` are the reservations; `taken` are the named clusters on
    which the plan has started a job; `changes` counts how often less was left.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.now_s = snapshot, snapshot.now_s
        self.limits = {key: limit.copy() for key, limit in snapshot.limits.items()}
        self.running = list(snapshot.running)
        self.reserved = Reservations()
        self.taken: dict[str, int] = {}
        self.changes = 0

    def start(self, job: QueuedJob) -> None:
        """Take the capacity that `job` requests."""
        for key in job.shape.limits:
            self.limits[key].take(job.shape.demand)
        if job.cluster is not None:
            self.taken[job.cluster.name] = job.job_id
        self.changes += 1
        self.running.append(RunningJob(job.job_id, job.shape, job.until_s(self.now_s)))

    def ending_of(self, limit: Limit, what: str) -> float:
        """Return how much of a limit's resource is being given back."""
        key = next(key for key, each in self.limits.items() if each is limit)
        return ending_within(key, what, self.running)

    def count_on(self, chosen: Collection[RunningJob], job: QueuedJob) -> None:
        """Reserve for `job` what `chosen`, which are being stopped, will leave soon.

        Nor may its own quotas be used up by others until then.
        """
        going = {id(each) for each in chosen}
        self.running = [
            replace(each, is_leaving=True, ends_s=self.now_s) if id(each) in going else each
            for each in self.running
        ]
        soon = [
            replace(each, ends_s=self.now_s) if each.is_leaving else each for each in self.running
        ]
        # Those before it have too little all the same, and are not put off: see `let_beside`.
        self.reserved.hold(job, soon, self.limits, beside_others=False)
        self.reserved.take_beside(job)
        for limit in (self.limits[key] for key in job.shape.limits):
            if not limit.kind.is_machines:
                limit.take(job.shape.demand)
        self.changes += 1
