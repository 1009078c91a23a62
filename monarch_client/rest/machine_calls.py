"""The endpoints about machines: clusters, hosts, plans, places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from monarch_client.rest.bodies import spec_body
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page
from monarch_client.rest.machine_models import Cluster, Infra, Plan
from monarch_client.rest.metric_models import Metrics

T = TypeVar("T")

_ASK_AGAIN_S = 1.0
_ASK_FOR_S = 60


class MachineCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def clusters(self, project: str | None = None) -> list[Cluster]:
        """Clusters that exist, newest first: a project's, or all that one may see."""
        path = "/clusters" if project is None else f"/projects/{project}/clusters"
        return decode_page(Cluster, self.connection.request("GET", path)).results

    def metrics(
        self, project: str, job_id: int, *, attempt: int | None = None, rank: int | None = None
    ) -> Metrics:
        """What a job's hosts last told; with `rank` also that host's history."""
        path = f"/projects/{project}/jobs/{job_id}/metrics"
        params = {"attempt": attempt, "rank": rank}
        known = {name: value for name, value in params.items() if value is not None}
        return decode(Metrics, self.connection.request("GET", path, params=known))

    def take_down(self, name: str) -> Cluster:
        """Take down a cluster on which no job is. ConflictError while one is."""
        path = f"/clusters/{quote(name, safe='')}/actions/down"
        return decode(Cluster, self.connection.request("POST", path, repeatable=True))

    def keep(self, project: str, name: str, duration: str) -> Cluster:
        """Keep a cluster without a job for at least `duration` ("2h") from now.

        ConflictError when a job is on it, or beyond what an administrator allows.
        """
        path = f"/projects/{project}/clusters/{quote(name, safe='')}/actions/extend"
        body = {"duration": duration}
        return decode(Cluster, self.connection.request("POST", path, repeatable=True, json=body))

    def plan(self, project: str, spec: str | Mapping[str, Any]) -> Plan:
        """Where a job could run and for how much. InvalidSpecErrors as from `submit`.

        Asks again while the backend is at it, for a minute; then the plan is still pending.
        """

        def ask() -> Plan:
            path, body = f"/projects/{project}/plan", spec_body(spec)
            return decode(Plan, self.connection.request("POST", path, repeatable=True, **body))

        return self._ask_until(ask, lambda plan: not plan.is_pending)

    def infra(self) -> list[Infra]:
        """Where jobs can run. Asks again while there is nothing to show yet, for a minute."""

        def ask() -> list[Infra]:
            return decode_page(Infra, self.connection.request("GET", "/infra")).results

        def is_known(places: list[Infra]) -> bool:
            return all(place.asked_at or not place.is_asking for place in places)

        return self._ask_until(ask, is_known)

    def _ask_until(self, ask: Callable[[], T], is_good: Callable[[T], bool]) -> T:
        answer = ask()
        for _ in range(_ASK_FOR_S):
            if is_good(answer):
                break
            self.connection.sleep(_ASK_AGAIN_S)
            answer = ask()
        return answer
