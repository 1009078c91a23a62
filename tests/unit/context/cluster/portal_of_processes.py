"""A fake portal that runs the scripts of its jobs as processes of this machine."""

from __future__ import annotations

import json
from typing import Any

import httpx

from monarch_client.context import JobStatus, LocalClusterContext, PortalClusterContext, RuntimeEnv
from tests.unit.rest.fake_portal import FakePortal, job_json, line_json, ok, page

JOBS = "/projects/rl/jobs"
_STATUSES = {JobStatus.STOPPED: "CANCELLED"}


class PortalOfProcesses(FakePortal):
    """The endpoints of jobs; `specs` are those that were submitted."""

    def __init__(self, processes: LocalClusterContext) -> None:
        super().__init__()
        self._processes = processes
        self._ids: dict[int, str] = {}
        self.specs: list[dict[str, Any]] = []
        self.on(f"POST {JOBS}", self._submit)
        self.on(f"GET {JOBS}", self._list)

    def context(self, **options: Any) -> PortalClusterContext:
        """Return a context of this portal."""
        return PortalClusterContext(self.client(), "rl", **options)

    def _submit(self, request: httpx.Request) -> httpx.Response:
        spec = json.loads(request.content)["spec"]
        self.specs.append(spec)
        number = len(self.specs)
        self._ids[number] = self._processes.create_job(spec["run"], RuntimeEnv(env=spec["envs"]))
        path = f"{JOBS}/{number}"
        self.on(f"GET {path}", lambda request: self._answer_job(number, request))
        self.on(f"GET {path}/logs", lambda request: self._logs(number, request))
        self.on(f"POST {path}/actions/cancel", lambda request: self._delete(number, request))
        self.on(f"DELETE {path}", lambda request: self._delete(number, request))
        return ok(self._job(number), 201)(request)

    def _list(self, request: httpx.Request) -> httpx.Response:
        return page(self._job(number) for number in [*self._ids][::-1])(request)

    def _answer_job(self, number: int, request: httpx.Request) -> httpx.Response:
        return ok(self._job(number))(request)

    def _job(self, number: int) -> dict[str, Any]:
        info = next(each for each in self._processes.list_jobs() if each.id == self._ids[number])
        moments = (info.submission_time, info.start_time, info.end_time)
        created, started, ended = (each.isoformat() if each else None for each in moments)
        return job_json(
            id=number,
            status=_STATUSES.get(info.status, info.status.value),
            is_final=ended is not None,
            attempt_count=1,
            created_at=created,
            started_at=started,
            ended_at=ended,
        )

    def _logs(self, number: int, request: httpx.Request) -> httpx.Response:
        is_stderr = request.url.params["stream"] == "stderr"
        text = self._processes.get_job_logs(self._ids[number])[is_stderr]
        return page(line_json(at, line) for at, line in enumerate(text.splitlines(), 1))(request)

    def _delete(self, number: int, request: httpx.Request) -> httpx.Response:
        self._processes.delete_job(self._ids[number])
        if request.method == "POST":
            return ok(self._job(number))(request)
        del self._ids[number]
        self._answers.pop(f"GET {JOBS}/{number}")
        return httpx.Response(204)
