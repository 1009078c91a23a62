"""The nodes of an attempt: the worker of each, and the last metrics of its host."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.models import Attempt
from jobs.permissions import Actor, job_for
from jobs.readers.chosen_attempt import chosen_attempt
from jobs.readers.host_metrics import HostChoice, HostView, host_metrics
from jobs.readers.workers import ENDED_BY_SIGTERM, workers_of
from monarch_client.wire.attempts import Worker


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node. `host` is None until it has reported.

    `silent_at_end_s`: the time from its last line to the end of the attempt.
    """

    worker: Worker
    host: HostView | None
    silent_at_end_s: float | None = None

    @property
    def has_failed(self) -> bool:
        """Whether its program ended with an error of its own, and not because it was stopped."""
        return self.worker.exit_code not in {None, 0, ENDED_BY_SIGTERM}


@dataclass(frozen=True, slots=True)
class NodesView:
    """The nodes of an attempt, by rank. `attempt` is None before the first one."""

    attempt: int | None
    is_over: bool
    is_final: bool
    num_nodes: int
    nodes: list[NodeView]


def job_nodes(actor: Actor, slug: str, job_id: int, number: int | None = None) -> NodesView:
    """Return the nodes of an attempt, the newest unless `number` names one.

    NotFoundError as for `job_for`, or for an attempt that does not exist.
    """
    job = job_for(actor, slug, job_id)
    attempt = chosen_attempt(job, number)
    found = host_metrics(actor, slug, job_id, HostChoice(number))
    hosts = {host.rank: host for host in found.hosts if isinstance(host, HostView)}
    return NodesView(
        attempt=found.attempt,
        is_over=found.is_over,
        is_final=found.is_final,
        num_nodes=job.num_hosts,
        nodes=[
            NodeView(worker, hosts.get(worker.rank), _silent_at_end_s(attempt, worker))
            for worker in workers_of(attempt)
        ]
        if attempt
        else [],
    )


def _silent_at_end_s(attempt: Attempt, worker: Worker) -> float | None:
    if attempt.ended_at is None or worker.last_line_at is None:
        return None
    # Lines have whole seconds.
    return max(0, int((attempt.ended_at - worker.last_line_at).total_seconds()))
