"""The driver of a running portal over REST while its parts break: lost requests are repeated."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import httpx

from tests.faults.model.parts import VITAL, Parts
from tests.faults.model.remains import remains
from tests.faults.model.report import report
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOBS = "/api/v1/projects/default/jobs"
# One kill loses one answer; more than this many lost ones are a portal that does not come back.
TRIES = 4
MENDED_S = 60
_AWAY = {502, 503, 504}
SWEPT_S = 40
# A line for each request would be all that is seen of a failure.
logging.getLogger("httpx").setLevel(logging.WARNING)


class ViolationError(AssertionError):
    """The portal did what the model does not allow."""


class LostAnswerError(Exception):
    """A request with unknown outcome that must not be repeated blindly."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `repeated`: an earlier one to the same request was lost."""

    status: int
    code: str
    body: Any
    repeated: bool = False

    @property
    def answer(self) -> tuple[int, str]:
        """The part of the reply that the model knows."""
        return self.status, self.code


class Driver(Protocol):
    """The interface of a portal that a walk needs; there is a real one and a pretended one."""

    def submit(self, text: str, key: str) -> Reply: ...
    def act(self, verb: str, job_id: int) -> Reply: ...
    def jobs(self) -> Reply: ...
    def read(self, job_id: int, what: str = "") -> Reply: ...
    def harm(self, how: str, part: str, moment: str) -> None: ...
    @property
    def is_armed(self) -> bool: ...
    def fire(self) -> None: ...
    def mend(self) -> None: ...
    def clean(self) -> bool: ...
    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool: ...
    def remains(self) -> list[str]: ...
    def report(self) -> str: ...


class PortalDriver:
    """The real driver. Signals may be sent now, or while the next request is on its way."""

    def __init__(self, portal: PortalProcess) -> None:
        self._portal = portal
        self._parts = Parts(portal)
        self._client = portal.client()
        self._armed: tuple[str, str] | None = None
        self._lock = threading.Lock()
        # Answers may be lost while fewer kills have been repaired than there were.
        self._kills = self._mended = 0

    def close(self) -> None:
        """Continue all parts, and close the client."""
        self._parts.thaw()
        self._client.close()

    def submit(self, text: str, key: str) -> Reply:
        """Submit under an Idempotency-Key, repeated until it is answered."""
        headers = {"Content-Type": "application/yaml", "Idempotency-Key": key}
        return self._request("POST", JOBS, content=text.encode(), headers=headers)

    def act(self, verb: str, job_id: int) -> Reply:
        """Cancel, hold, release, delete or rerun a job. LostAnswerError: only of a rerun."""
        if verb == "delete":
            return self._request("DELETE", f"{JOBS}/{job_id}")
        path = f"{JOBS}/{job_id}/actions/{verb}"
        return self._request("POST", path, repeat=verb != "rerun")

    def jobs(self) -> Reply:
        """Get the list of jobs."""
        return self._request("GET", JOBS, params={"limit": 200})

    def read(self, job_id: int, what: str = "") -> Reply:
        """Get the job itself, or its `events`, `attempts` or `logs`."""
        params = {} if what in {"", "attempts"} else {"limit": 1000}
        return self._request("GET", f"{JOBS}/{job_id}/{what}".rstrip("/"), params=params)

    def harm(self, how: str, part: str, moment: str) -> None:
        """Kill or freeze a part, `now` or when the `next` request has been sent."""
        self.fire()
        self._armed = (how, part)
        if moment == "now":
            self.fire(vital_stays=True)

    @property
    def is_armed(self) -> bool:
        """Whether something is to happen to the next request."""
        return self._armed is not None or self._parts.holds(*VITAL)

    def fire(self, *, vital_stays: bool = False) -> None:
        """Do what was planned for the next request; continue parts that would block it for ever."""
        with self._lock:
            self._parts.thaw(*VITAL)
            armed, self._armed = self._armed, None
            if armed is not None:
                self._strike(*armed)
            if not vital_stays:
                self._parts.thaw(*VITAL)

    def mend(self) -> None:
        """Let everything run, and wait until the portal is whole and says that it is ready."""
        self.fire()
        self._parts.thaw()
        kills = self._kills
        if not eventually(self._is_whole, timeout_s=MENDED_S):
            raise ViolationError(f"after {MENDED_S} s only {sorted(self._portal.pids())} are back")
        self._mended = max(self._mended, kills)

    def clean(self) -> bool:
        """Remove all jobs, whatever the model thinks of them, and return whether that worked."""
        try:
            self.mend()
            return eventually(lambda: self._swept() and not self.remains(), timeout_s=SWEPT_S)
        except (ViolationError, httpx.HTTPError):
            return False

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Whether the condition came true in time."""
        return eventually(condition, timeout_s=timeout_s)

    def remains(self) -> list[str]:
        """List what jobs have left on this machine."""
        return remains(self._portal.home.path / "local")

    def report(self) -> str:
        """Report the portal's state, for a person who has to understand a failure."""
        self._parts.thaw()
        return report(self._portal)

    def _strike(self, how: str, part: str) -> None:
        if how == "freeze":
            self._parts.freeze(part)
            return
        self._kills += part in VITAL
        self._parts.kill(part)

    def _is_whole(self) -> bool:
        try:
            return self._parts.are_whole() and self._client.get("/readyz").is_success
        except httpx.TransportError:
            return False

    def _swept(self) -> bool:
        jobs = self.jobs().body["results"]
        for job in jobs:
            self.act("delete" if job["is_final"] else "cancel", job["id"])
        return not jobs

    def _request(self, method: str, path: str, *, repeat: bool = True, **options: Any) -> Reply:
        for number in range(TRIES):
            mended = self._mended
            reply, loss = self._sent(method, path, **options)
            if reply is not None:
                return Reply(reply.status_code, _code(reply), _body(reply), repeated=number > 0)
            if self._kills == mended:
                raise ViolationError(f"{method} {path}: {loss}, with a portal that was whole")
            self.mend()
            if not repeat:
                raise LostAnswerError(f"{method} {path}: {loss}")
        raise ViolationError(f"{method} {path}: no answer to {TRIES} requests; the last: {loss}")

    def _sent(self, method: str, path: str, **options: Any) -> tuple[httpx.Response | None, str]:
        trace = {"trace": partial(_on_trace, self.fire)}
        try:
            reply = self._client.request(method, path, extensions=trace, **options)
        except httpx.TransportError as error:
            return None, repr(error)
        # A mistake of the portal's (500) is an answer, and one that no model allows.
        is_away = reply.status_code in _AWAY
        return (None, f"{reply.status_code} {reply.text}") if is_away else (reply, "")


def _on_trace(fire: Callable[[], None], event: str, _info: dict[str, Any]) -> None:
    if event == "http11.send_request_body.complete":
        fire()


def _body(reply: httpx.Response) -> Any:
    return reply.json() if reply.content else None


def _code(reply: httpx.Response) -> str:
    return "" if reply.is_success else str(reply.json()["code"])
