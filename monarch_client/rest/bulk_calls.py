"""The endpoint of one action on many jobs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import islice
from typing import Any

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode
from monarch_client.wire.bulk import BULK_LIMIT


class BulkCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def act_on_jobs(
        self, project: str, action: str, jobs: Sequence[int], **options: Any
    ) -> list[wire.bulk.JobOutcome]:
        """Apply an action to many jobs; the outcome of each, in their order.

        `action`: cancel, rerun, hold, release, prioritize, label or delete. `options`: priority,
        labels, drop_deleted. A job that is refused does not keep the others from the action.
        """
        rest = iter(jobs)
        outcomes: list[wire.bulk.JobOutcome] = []
        while some := list(islice(rest, BULK_LIMIT)):
            body = {"action": action, "jobs": some, **options}
            answer = self.connection.request(
                "POST",
                f"/projects/{project}/jobs/actions",
                repeatable=True,
                json=body,
                # A repeated request starts no second job.
                headers={"Idempotency-Key": uuid.uuid4().hex},
            )
            outcomes += decode(wire.bulk.BulkResult, answer).results
        return outcomes
