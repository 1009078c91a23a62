"""The endpoints about several jobs at once: submitted together, and arrays."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from monarch_client import wire
from monarch_client.rest.bodies import batch_body, rerun_body
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page

# The most that the portal has on a page.
_LIMIT = 200


class ArrayCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def submit_batch(
        self,
        project: str,
        specs: Sequence[str | Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
    ) -> list[wire.jobs.Job]:
        """Submit several jobs, which may depend on one another: all of them or none.

        InvalidSpecErrors carries everything wrong with any of them, each with its `document`.
        """
        headers = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        body = batch_body(specs)
        path = f"/projects/{project}/jobs/batch"
        answer = self.connection.request("POST", path, repeatable=True, json=body, headers=headers)
        return decode_page(wire.jobs.Job, answer).results

    def array(self, project: str, array_id: int) -> wire.jobs.Array:
        """Return an array with all its jobs, whichever number of pages they take."""
        first = self._array_page(project, array_id)
        jobs, following = [*first.jobs], first.next
        while following is not None:
            page = self._array_page(project, array_id, cursor=following)
            jobs += page.jobs
            following = page.next
        return replace(first, jobs=jobs, next=None)

    def _array_page(self, project: str, array_id: int, **params: str) -> wire.jobs.Array:
        path, params = _array(project, array_id), {"limit": str(_LIMIT), **params}
        return decode(wire.jobs.Array, self.connection.request("GET", path, params=params))

    def cancel_array(self, project: str, array_id: int) -> wire.jobs.Array:
        """End all jobs of an array that have not ended; return it with the first page of them."""
        path = _array(project, array_id) + "/actions/cancel"
        return decode(wire.jobs.Array, self.connection.request("POST", path, repeatable=True))

    def rerun_failed(
        self, project: str, array_id: int, *, drop_deleted: bool = False
    ) -> wire.jobs.Array:
        """Run its failed and cancelled jobs again. ConflictError where there is none.

        Return the array with the first page of its jobs. `drop_deleted` leaves out dependencies on
        jobs that were deleted.
        """
        path = _array(project, array_id) + "/actions/rerun-failed"
        body = rerun_body(drop_deleted=drop_deleted)
        return decode(wire.jobs.Array, self.connection.request("POST", path, json=body))


def _array(project: str, array_id: int) -> str:
    return f"/projects/{project}/arrays/{array_id}"
