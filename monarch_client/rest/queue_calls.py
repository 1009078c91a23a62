"""The endpoints about the queue: queues, machines, quotas, shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page


class QueueCalls:
    """A part of `PortalClient`. What sets or deletes is for administrators of the installation."""

    connection: Connection

    def pools(self) -> list[wire.queue.Place]:
        """List pools, then backends, with the current use of their machines."""
        return decode_page(wire.queue.Place, self.connection.request("GET", "/pools")).results

    def set_pool(self, name: str, **change: Any) -> wire.queue.Place:
        """Make or change a pool; None leaves it.

        `change`: backend, caps, patience ("12h"), half_life, reclaim, preempts_by_rank.
        """
        return decode(wire.queue.Place, self._put("/pools", name, change))

    def delete_pool(self, name: str) -> None:
        """Forget a pool. ConflictError while queues use it."""
        self.connection.request("DELETE", f"/pools/{quote(name, safe='')}")

    def queues(self) -> list[wire.queue.Queue]:
        """List queues, the highest rank first, with how many jobs wait, are held and run."""
        return decode_page(wire.queue.Queue, self.connection.request("GET", "/queues")).results

    def set_queue(self, name: str, **change: Any) -> wire.queue.Queue:
        """Make or change a queue: rank, pool (empty: none), preemptible; None leaves it."""
        return decode(wire.queue.Queue, self._put("/queues", name, change))

    def delete_queue(self, name: str) -> None:
        """Forget a queue. ConflictError while jobs wait or run in it."""
        self.connection.request("DELETE", f"/queues/{quote(name, safe='')}")

    def waiting(
        self, *, cursor: str | None = None, limit: int | None = None
    ) -> wire.page.Page[wire.queue.Turn]:
        """List the queued jobs in scheduling order."""
        given = {"cursor": cursor, "limit": limit}
        params = {name: value for name, value in given.items() if value is not None}
        return decode_page(wire.queue.Turn, self.connection.request("GET", "/queue", params=params))

    def timeline(self, *, hours: int = 6) -> wire.timeline.Timeline:
        """Return what has machines from when until when, and what starts next.

        `hours`: the length of the timeline, with the present in its middle.
        """
        answer = self.connection.request("GET", "/queue/timeline", params={"hours": hours})
        return decode(wire.timeline.Timeline, answer)

    def quotas(self, project: str | None = None) -> list[wire.queue.Quota]:
        """List quotas with their current use: a project's, or all that the user may see."""
        path = "/quotas" if project is None else f"/projects/{project}/quotas"
        return decode_page(wire.queue.Quota, self.connection.request("GET", path)).results

    def set_quota(
        self, caps: Mapping[str, float], *, nominal: Mapping[str, float] | None = None, **whose: Any
    ) -> wire.queue.Quota:
        """Set how much may run at once. `whose`: project or queue; user, per_person, pool.

        `nominal`: a project's own part of `caps`; None leaves it, an empty one takes it away.
        """
        own = {} if nominal is None else {"nominal": dict(nominal)}
        body = {**whose, "caps": dict(caps), **own}
        return decode(
            wire.queue.Quota, self.connection.request("POST", "/quotas", repeatable=True, json=body)
        )

    def delete_quota(self, quota_id: int) -> None:
        """Take a quota away."""
        self.connection.request("DELETE", f"/quotas/{quota_id}")

    def shares(self) -> list[wire.queue.Share]:
        """List the usage of each pool by project; the lowest weighted usage comes first."""
        return decode_page(wire.queue.Share, self.connection.request("GET", "/shares")).results

    def set_weight(self, project: str, weight: float) -> wire.queue.Weight:
        """Say how much of a pool a project may have beside others, as a proportion."""
        path, body = f"/projects/{project}/weight", {"weight": weight}
        return decode(
            wire.queue.Weight, self.connection.request("PUT", path, repeatable=True, json=body)
        )

    def _put(self, path: str, name: str, change: Mapping[str, Any]) -> Any:
        body = {key: value for key, value in change.items() if value is not None}
        return self.connection.request(
            "PUT", f"{path}/{quote(name, safe='')}", repeatable=True, json=body
        )
