"""Jobs that are not submitted yet, as the scheduler would see them if they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.policies.job_request import JobRequest
from jobs.queueing.limits import RequestedResources
from jobs.queueing.queued_rows import QueuedRow
from jobs.queueing.warm_requests import NamingJob

# Greater than the number of any job: of two that wait equally long the older one comes first.
FIRST_NUMBER = 2**53


@dataclass(frozen=True, slots=True)
class NewJobs:
    """Equal jobs that one submit would queue: one, or those of an array that may start at once."""

    request: JobRequest
    project_id: int
    user_id: int
    priority: int
    count: int = 1

    @property
    def numbers(self) -> range:
        """The numbers of these jobs in a plan."""
        return range(FIRST_NUMBER, FIRST_NUMBER + self.count)

    def rows(self, columns: Sequence[str], now_s: float) -> dict[int, QueuedRow]:
        """Return the rows that they would have in the queue; `columns` make a request."""
        request = self.request
        owner = {"project_id": self.project_id, "submitted_by_id": self.user_id}
        values = {**owner, **request.columns()}
        row = QueuedRow(
            version="",
            priority=self.priority,
            since_s=now_s,
            preempted_by=None,
            has_claim=False,
            requested_s=request.duration_s,
            extended_s=0,
            group_limit=request.group_limit,
            wait_reason="",
            message="",
            requested=RequestedResources(*(values[name] for name in columns)),
        )
        return dict.fromkeys(self.numbers, row)

    def naming(self) -> list[NamingJob]:
        """Return them as jobs that name a cluster; none if they name none."""
        request = self.request
        if not request.cluster:
            return []
        wants = (request.queue_name, request.backend_name, request.num_nodes, request.cluster)
        return [NamingJob(number, self.project_id, *wants) for number in self.numbers]

    def fingerprints(self) -> dict[int, str]:
        """Return the fingerprints by number; none if they run on no warm cluster of others."""
        fingerprint = self.request.fingerprint
        return dict.fromkeys(self.numbers, fingerprint) if fingerprint else {}
