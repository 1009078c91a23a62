"""The endpoints about machines: clusters, hosts, plans, places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from monarch_client.rest.bodies import spec_body
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page
from monarch_client.wire.clusters import Cluster, Infra, Plan
from monarch_client.wire.mesh import Mesh
from monarch_client.wire.metrics import Hosts
from monarch_client.wire.money import Budget, Usage
from monarch_client.wire.queue import Waiting
from monarch_client.wire.stacks import StackDump, Stacks

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
    ) -> Hosts:
        """What a job's hosts last told; with `rank` also that host's history."""
        path = f"/projects/{project}/jobs/{job_id}/metrics"
        params = {"attempt": attempt, "rank": rank}
        known = {name: value for name, value in params.items() if value is not None}
        return decode(Hosts, self.connection.request("GET", path, params=known))

    def why(self, project: str, job_id: int) -> Waiting:
        """Why a job waits: its place, what binds, who has it, when it probably starts."""
        path = f"/projects/{project}/jobs/{job_id}/why"
        return decode(Waiting, self.connection.request("GET", path))

    def meshes(self, project: str, job_id: int, *, attempt: int | None = None) -> Mesh:
        """The hosts, procs and actors of an attempt, the newest else, and what failed when."""
        path = f"/projects/{project}/jobs/{job_id}/mesh"
        known = {} if attempt is None else {"attempt": attempt}
        return decode(Mesh, self.connection.request("GET", path, params=known))

    def ask_stacks(
        self, project: str, job_id: int, *, rank: int = 0, pid: int | None = None
    ) -> StackDump:
        """Ask a rank for the stacks of its Python processes, or of one. `stacks` tells them.

        ConflictError where no node can be asked, or while this one is being asked.
        """
        path, body = f"/projects/{project}/jobs/{job_id}/stacks", {"rank": rank, "pid": pid}
        return decode(StackDump, self.connection.request("POST", path, json=body))

    def stacks(
        self, project: str, job_id: int, *, attempt: int | None = None, dump: int | None = None
    ) -> Stacks:
        """The stack dumps of an attempt, the newest else; with `dump` that one alone."""
        params = {"attempt": attempt, "id": dump}
        known = {name: value for name, value in params.items() if value is not None}
        path = f"/projects/{project}/jobs/{job_id}/stacks"
        return decode(Stacks, self.connection.request("GET", path, params=known))

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

    def budget(self, project: str) -> Budget:
        """The project's budget of this month, and what was spent of it."""
        return decode(Budget, self.connection.request("GET", f"/projects/{project}/budget"))

    def set_budget(
        self,
        project: str,
        usd: str | None,
        *,
        on_spent: str | None = None,
        warn_at: Sequence[int] | None = None,
    ) -> Budget:
        """Set it in US$ a month, or take it away (None). For the installation's administrators.

        `on_spent`: warn, hold or stop. `warn_at`: in per cent. None leaves what there is; a new
        budget holds, and is told at 50, 80 and 100.
        """
        told = {"on_spent": on_spent, "warn_at": None if warn_at is None else list(warn_at)}
        body = {"usd": usd, **{key: value for key, value in told.items() if value is not None}}
        path = f"/projects/{project}/budget"
        return decode(Budget, self.connection.request("PUT", path, repeatable=True, json=body))

    def usage(
        self, project: str, *, by: str = "user", first_day: str = "", last_day: str = ""
    ) -> Usage:
        """What a project has used by user, job or day; days are such as 2026-11-24, in UTC."""
        asked = {"by": by, "from": first_day, "to": last_day}
        params = {name: value for name, value in asked.items() if value}
        path = f"/projects/{project}/usage"
        return decode(Usage, self.connection.request("GET", path, params=params))

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
