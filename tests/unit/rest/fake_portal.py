"""A portal behind httpx.MockTransport: answers are scripted, requests are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import httpx

from monarch_client.rest.client import PortalClient

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]

_JSON = {"Content-Type": "application/json"}
MOMENT = "2026-03-01T12:00:00Z"


class FakePortal:
    """A portal that answers each `METHOD /path` as scripted; the last answer is repeated."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []
        self._answers: dict[str, list[Answer]] = {}

    def on(self, what: str, *answers: Answer) -> None:
        """Set the answers to `what`, such as "GET /me"."""
        self._answers[what] = list(answers)

    def options(self) -> dict[str, Any]:
        """Return options for a client that speaks to this portal and never really sleeps."""
        return {"transport": httpx.MockTransport(self._answer), "sleep": self.pauses.append}

    def client(self, **options: Any) -> PortalClient:
        """Return a client of this portal."""
        return PortalClient("http://portal", "mpt_x", **{**self.options(), **options})

    def seen(self, what: str) -> list[httpx.Request]:
        """List the requests of that kind, in order."""
        return [request for request in self.requests if _name(request) == what]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answers = self._answers.get(_name(request))
        if answers is None:
            return problem(404, "not_found", f"nothing scripted for {_name(request)}")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)


def _name(request: httpx.Request) -> str:
    return f"{request.method} {request.url.path.removeprefix('/api/v1')}"


def ok(body: Any, status: int = 200) -> Callable[[httpx.Request], httpx.Response]:
    content = json.dumps(body)
    return lambda request: httpx.Response(status, content=content, headers=_JSON)


def page(rows: Iterable[Any], **more: Any) -> Callable[[httpx.Request], httpx.Response]:
    return ok({"results": list(rows), "next": None, "previous": None, **more})


def problem(status: int, code: str, detail: str = "No.", **members: Any) -> httpx.Response:
    body = {"status": status, "code": code, "detail": detail, **members}
    headers = {"Content-Type": "application/problem+json"}
    return httpx.Response(status, content=json.dumps(body), headers=headers)


def event(kind: str, data: Any = None, cursor: str = "") -> bytes:
    named = f"id: {cursor}\n" if cursor else ""
    return f"event: {kind}\n{named}data: {json.dumps(data or {})}\n\n".encode()


def stream(*parts: bytes | Exception) -> Callable[[httpx.Request], httpx.Response]:
    """Return an answer that streams `parts`; an exception among them breaks it there."""

    def body() -> Iterable[bytes]:
        for part in parts:
            if isinstance(part, Exception):
                raise part
            yield part

    headers = {"Content-Type": "text/event-stream"}
    return lambda request: httpx.Response(200, content=body(), headers=headers)


def job_json(**fields: Any) -> dict[str, Any]:
    job = {
        "id": 42,
        "project": "rl",
        "name": "hello",
        "kind": "plain",
        "kind_label": "Job",
        "status": "QUEUED",
        "status_label": "Queued",
        "wait_reason": "",
        "wait_message": "",
        "stop_reason": "",
        "message": "",
        "hint": "",
        "exit_code": None,
        "num_nodes": 1,
        "backend": "local",
        "queue": "default",
        "priority": 50,
        "preemptible": False,
        "submitted_by": "alice",
        "rerun_of": None,
        "parent": None,
        "parent_attempt": None,
        "schedule": "",
        "created_at": MOMENT,
        "started_at": None,
        "ended_at": None,
        "max_duration_s": None,
        "stops_at": None,
        "attempt": None,
        "attempt_count": 0,
        "is_final": False,
        "can_cancel": True,
        "can_hold": True,
        "can_release": False,
        "can_prioritize": False,
        "can_extend": False,
        "can_rerun": True,
        "can_delete": False,
        "url": "http://portal/rl/jobs/42",
        "spec_source": "run: echo hi",
        "spec": {"run": "echo hi"},
    }
    return {**job, **fields}


def array_json(**fields: Any) -> dict[str, Any]:
    places = [(1, "1e-4"), (2, "3e-4")]
    array = {
        "id": 7,
        "project": "rl",
        "name": "ppo",
        "size": 2,
        "max_parallel": 1,
        "values": {"lr": ["1e-4", "3e-4"]},
        "counts": {"QUEUED": 2},
        "submitted_by": "alice",
        "created_at": MOMENT,
        "ended_at": None,
        "is_final": False,
        "can_cancel": True,
        "can_rerun_failed": False,
        "jobs": [
            job_json(id=job_id, array=7, array_index=job_id - 1, array_values={"lr": lr})
            for job_id, lr in places
        ],
        "url": "http://portal/rl/arrays/7",
    }
    return {**array, **fields}


def ended_job(status: str = "SUCCEEDED", **fields: Any) -> dict[str, Any]:
    own = {
        "status": status,
        "status_label": status.title(),
        "is_final": True,
        "started_at": MOMENT,
        "ended_at": "2026-03-01T12:00:05Z",
    }
    return job_json(**{**own, **fields})


def line_json(line: int, text: str, **fields: Any) -> dict[str, Any]:
    return {
        "line": line,
        "attempt": 1,
        "rank": 0,
        "stream": "stdout",
        "at": MOMENT,
        "text": text,
        **fields,
    }


def stage_json(name: str, state: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.title(),
        "state": state,
        "started_at": None,
        "ended_at": None,
        "duration_s": None,
        "detail": "",
        "failure": "",
        **fields,
    }


def attempt_json(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "number": number,
        "created_at": MOMENT,
        "started_at": None,
        "ended_at": None,
        "stop_reason": "",
        "message": "",
        "hint": "",
        "exit_code": None,
        "cluster_name": "",
        "stages": [],
        "workers": [],
        **fields,
    }
