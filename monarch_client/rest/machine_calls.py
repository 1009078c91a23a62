"""The endpoints about machines: clusters, hosts, plans, places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from monarch_client import wire
from monarch_client.rest.bodies import batch_body, spec_body
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page

T = TypeVar("T")

_ASK_AGAIN_S = 1.0
_ASK_FOR_S = 60


class MachineCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def clusters(self, project: str | None = None) -> list[wire.clusters.Cluster]:
        """List existing clusters, newest first: a project's, or all that the user may see."""
        path = "/clusters" if project is None else f"/projects/{project}/clusters"
        return decode_page(wire.clusters.Cluster, self.connection.request("GET", path)).results

    def metrics(
        self, project: str, job_id: int, *, attempt: int | None = None, rank: int | None = None
    ) -> wire.metrics.Hosts:
        """Return the last reports of a job's hosts; with `rank` also that host's history."""
        path = f"/projects/{project}/jobs/{job_id}/metrics"
        params = {"attempt": attempt, "rank": rank}
        known = {name: value for name, value in params.items() if value is not None}
        return decode(wire.metrics.Hosts, self.connection.request("GET", path, params=known))

    def program_metrics(
        self,
        project: str,
        job_id: int,
        *,
        attempt: int | None = None,
        name: str = "",
        rank: int | None = None,
    ) -> wire.metrics.ProgramMetrics:
        """Return the metrics that a job's program reported; with `name`, the history of one."""
        path = f"/projects/{project}/jobs/{job_id}/program-metrics"
        params = {"attempt": attempt, "name": name or None, "rank": rank}
        known = {key: value for key, value in params.items() if value is not None}
        answer = self.connection.request("GET", path, params=known)
        return decode(wire.metrics.ProgramMetrics, answer)

    def why(self, project: str, job_id: int) -> wire.queue.Waiting:
        """Return why a job waits: position, limits, their holders, when it probably starts."""
        path = f"/projects/{project}/jobs/{job_id}/why"
        return decode(wire.queue.Waiting, self.connection.request("GET", path))

    def meshes(self, project: str, job_id: int, *, attempt: int | None = None) -> wire.mesh.Mesh:
        """Return an attempt's hosts, procs, actors and failures; by default the newest's."""
        path = f"/projects/{project}/jobs/{job_id}/mesh"
        known = {} if attempt is None else {"attempt": attempt}
        return decode(wire.mesh.Mesh, self.connection.request("GET", path, params=known))

    def tasks(
        self, project: str, job_id: int, *, attempt: int | None = None
    ) -> wire.tasks.TaskContexts:
        """Return an attempt's task contexts: tasks, actors, objects and failures."""
        path = f"/projects/{project}/jobs/{job_id}/tasks"
        known = {} if attempt is None else {"attempt": attempt}
        return decode(wire.tasks.TaskContexts, self.connection.request("GET", path, params=known))

    def ask_stacks(
        self, project: str, job_id: int, *, rank: int = 0, pid: int | None = None
    ) -> wire.stacks.StackDump:
        """Request from a rank the stacks of its Python processes, or of one; see `stacks`.

        ConflictError if no node can answer, or while a request to this one is pending.
        """
        path, body = f"/projects/{project}/jobs/{job_id}/stacks", {"rank": rank, "pid": pid}
        return decode(wire.stacks.StackDump, self.connection.request("POST", path, json=body))

    def ask_all_stacks(self, project: str, job_id: int) -> wire.stacks.Stacks:
        """Request the stacks of all ranks at the same time, of at most 64; see `stacks`.

        ConflictError if no node can answer, or while a request is pending.
        """
        path = f"/projects/{project}/jobs/{job_id}/stacks/all"
        return decode(wire.stacks.Stacks, self.connection.request("POST", path))

    def stacks(
        self, project: str, job_id: int, *, attempt: int | None = None, dump: int | None = None
    ) -> wire.stacks.Stacks:
        """Return an attempt's stack dumps, by default the newest's; with `dump` only that one."""
        params = {"attempt": attempt, "id": dump}
        known = {name: value for name, value in params.items() if value is not None}
        path = f"/projects/{project}/jobs/{job_id}/stacks"
        return decode(wire.stacks.Stacks, self.connection.request("GET", path, params=known))

    def gateway_sessions(self, project: str, job_id: int) -> list[wire.gateway.GatewaySession]:
        """List the programs that are attached to a job, then those that were."""
        path = f"/projects/{project}/jobs/{job_id}/gateway-sessions"
        return decode_page(
            wire.gateway.GatewaySession, self.connection.request("GET", path)
        ).results

    def end_gateway_session(self, project: str, job_id: int, session_id: int) -> None:
        """End a gateway session. NotFoundError: the job has none with that id."""
        path = f"/projects/{project}/jobs/{job_id}/gateway-sessions/{session_id}"
        self.connection.request("DELETE", path)

    def take_down(self, name: str) -> wire.clusters.Cluster:
        """Take down a cluster on which no job is. ConflictError while one is."""
        path = f"/clusters/{quote(name, safe='')}/actions/down"
        return decode(wire.clusters.Cluster, self.connection.request("POST", path, repeatable=True))

    def stop_machines(self, project: str, name: str) -> wire.clusters.Cluster:
        """Stop the machines of an idle cluster and keep their disks.

        ConflictError when a job is on it, or its infrastructure cannot stop machines.
        """
        path = f"/projects/{project}/clusters/{quote(name, safe='')}/actions/stop"
        return decode(wire.clusters.Cluster, self.connection.request("POST", path))

    def keep(self, project: str, name: str, duration: str) -> wire.clusters.Cluster:
        """Keep a cluster without a job for at least `duration` ("2h") from now.

        ConflictError when a job is on it, or beyond what an administrator allows.
        """
        path = f"/projects/{project}/clusters/{quote(name, safe='')}/actions/extend"
        body = {"duration": duration}
        return decode(
            wire.clusters.Cluster, self.connection.request("POST", path, repeatable=True, json=body)
        )

    def plan(self, project: str, spec: str | Mapping[str, Any]) -> wire.clusters.Plan:
        """Return where a job could run and for how much. InvalidSpecErrors as from `submit`.

        It repeats the request while the backend looks, for a minute; then the plan is pending.
        """

        def ask() -> wire.clusters.Plan:
            path, body = f"/projects/{project}/plan", spec_body(spec)
            return decode(
                wire.clusters.Plan, self.connection.request("POST", path, repeatable=True, **body)
            )

        return self._ask_until(ask, lambda plan: not plan.is_pending)

    def plan_batch(
        self, project: str, specs: Sequence[str | Mapping[str, Any]]
    ) -> wire.clusters.Plans:
        """Return the plans of jobs that would be submitted together, as `plan` does.

        InvalidSpecErrors as from `submit_batch`.
        """
        body = batch_body(specs)

        def ask() -> wire.clusters.Plans:
            path = f"/projects/{project}/plan/batch"
            answer = self.connection.request("POST", path, repeatable=True, json=body)
            return decode(wire.clusters.Plans, answer)

        return self._ask_until(ask, lambda plans: not any(e.is_pending for e in plans.results))

    def budget(self, project: str) -> wire.money.Budget:
        """Return the project's budget of this month, and what was spent of it."""
        return decode(
            wire.money.Budget, self.connection.request("GET", f"/projects/{project}/budget")
        )

    def set_budget(
        self,
        project: str,
        usd: str | None,
        *,
        on_spent: str | None = None,
        warn_at: Sequence[int] | None = None,
    ) -> wire.money.Budget:
        """Set the budget in US$ a month, or remove it (None). For administrators.

        `on_spent`: warn, hold or stop. `warn_at`: in per cent. None changes nothing; a new
        budget holds, and notifies at 50, 80 and 100.
        """
        options = {"on_spent": on_spent, "warn_at": None if warn_at is None else list(warn_at)}
        body = {"usd": usd, **{key: value for key, value in options.items() if value is not None}}
        path = f"/projects/{project}/budget"
        return decode(
            wire.money.Budget, self.connection.request("PUT", path, repeatable=True, json=body)
        )

    def usage(
        self, project: str, *, by: str = "user", first_day: str = "", last_day: str = ""
    ) -> wire.money.Usage:
        """Return a project's usage by user, job or day; days are such as 2026-11-24, in UTC."""
        given = {"by": by, "from": first_day, "to": last_day}
        params = {name: value for name, value in given.items() if value}
        path = f"/projects/{project}/usage"
        return decode(wire.money.Usage, self.connection.request("GET", path, params=params))

    def infra(self) -> list[wire.clusters.Infra]:
        """Return where jobs can run. Repeats the request, for a minute, until it is known."""

        def ask() -> list[wire.clusters.Infra]:
            return decode_page(
                wire.clusters.Infra, self.connection.request("GET", "/infra")
            ).results

        def is_known(rows: list[wire.clusters.Infra]) -> bool:
            return all(place.asked_at or not place.is_asking for place in rows)

        return self._ask_until(ask, is_known)

    def _ask_until(self, ask: Callable[[], T], is_good: Callable[[T], bool]) -> T:
        answer = ask()
        for _ in range(_ASK_FOR_S):
            if is_good(answer):
                break
            self.connection.sleep(_ASK_AGAIN_S)
            answer = ask()
        return answer
