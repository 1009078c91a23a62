"""Senders of frames: all that each batch of them needs, in one short statement."""

from __future__ import annotations

import hmac
import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.db import connection

from jobs.errors import AttemptClosedError, NotFoundError, PermissionDeniedError
from jobs.models import Attempt
from jobs.models.api_token import token_digest
from jobs.models.attempt import takes_frames
from jobs.statuses import Carrier, JobStatus, StackState
from monarch_client.spec.tpu import hosts_of_node

# Asked through models it takes six times as long, which each batch of lines would pay for.
_SENDER = """
SELECT attempt.id, attempt.job_id, attempt.number, job.num_nodes, job.gpu_type,
       job.request_options ? 'secrets',
       attempt.contacted_at, attempt.last_seen_at,
       attempt.carrier <> %(push)s OR job.status = %(stopping)s OR EXISTS (
           SELECT FROM jobs_stackdump AS dump
           WHERE dump.attempt_id = attempt.id AND dump.state = %(asked)s)
       OR EXISTS (
           SELECT FROM jobs_gatewaysession AS session
           WHERE session.attempt_id = attempt.id AND session.ended_at IS NULL),
       head.acked, head.open_ends,
       attempt.token_digest, attempt.ended_at, cluster.status
FROM jobs_attempt AS attempt
JOIN jobs_job AS job ON job.id = attempt.job_id
LEFT JOIN jobs_cluster AS cluster ON cluster.id = attempt.cluster_id
LEFT JOIN jobs_loghead AS head ON head.attempt_id = attempt.id
WHERE attempt.id = %(attempt)s
"""
_WORDS = {
    "push": Carrier.PUSH.value,
    "stopping": JobStatus.STOPPING.value,
    "asked": StackState.REQUESTED.value,
}


class LogState(NamedTuple):
    """The part of a log's head that frames change: see `LogHead`."""

    acked: dict[str, int]
    open_ends: dict[str, Any]

    def of_ranks(self, ranks: Collection[str]) -> LogState:
        """Return the part of the state that is about these ranks (as text)."""
        return LogState(*({k: v for k, v in m.items() if k.split()[0] in ranks} for m in self))

    def with_ranks(self, ranks: Collection[str], part: LogState) -> LogState:
        """Return the state with `part` as that of these ranks."""
        others = [{k: v for k, v in m.items() if k.split()[0] not in ranks} for m in self]
        return LogState(others[0] | part.acked, others[1] | part.open_ends)


@dataclass(frozen=True)
class Sender:
    """The attempt whose runner posts, and what was known of it when its request came.

    `is_waited_for`: there may be something to report to it, or to note about how its frames come.
    `log_state` may have changed since: compare it under the lock of the log.
    """

    attempt_id: int
    job_id: int
    number: int
    num_nodes: int
    gpu_type: str
    has_secrets: bool
    contacted_at: datetime | None
    last_seen_at: datetime | None
    is_waited_for: bool
    log_state: LogState

    @property
    def num_hosts(self) -> int:
        """Return the number of ranks, as `Job.num_hosts`."""
        return self.num_nodes * hosts_of_node(self.gpu_type)

    @cached_property
    def attempt(self) -> Attempt:
        """Whole attempt, read when it is needed: for lines alone it is not."""
        return Attempt.objects.select_related("job", "cluster").get(pk=self.attempt_id)


def sender_of(attempt_id: int, token: str) -> Sender:
    """Return the sender with `token`. NotFoundError, PermissionDeniedError, AttemptClosedError."""
    with connection.cursor() as cursor:
        cursor.execute(_SENDER, {"attempt": attempt_id, **_WORDS})
        row = cursor.fetchone()
    if row is None:
        raise NotFoundError(f"There is no attempt {attempt_id}.")
    *facts, acked, open_ends, digest, ended_at, cluster_status = row
    if not hmac.compare_digest(token_digest(token), digest):
        raise PermissionDeniedError("This is not the token of this attempt.")
    if not takes_frames(ended_at, cluster_status):
        raise AttemptClosedError
    state = LogState(json.loads(acked or "{}"), json.loads(open_ends or "{}"))
    return Sender(*[*facts, state])
