"""Request a further mesh at run time: its workers are a child job, which this driver uses."""

from __future__ import annotations

import os
import time
import uuid
from typing import TYPE_CHECKING

from .attaching import MeshesError
from .portal import Portal, runner_module

if TYPE_CHECKING:
    from typing import Any, Mapping

    from .attaching import Meshes

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.2, 2.0
_RELEASE_S = 30.0
_CONFLICT, _FORBIDDEN = 409, 403
_READY = {"READY", "RUNNING"}
_OVER_QUOTA = {"QUOTA", "BUDGET", "PARALLEL"}


class MeshRequestError(MeshesError):
    """A request for a mesh that failed. `job`: the child job; None if there is none."""

    def __init__(self, message: str, job: int | None = None) -> None:
        super().__init__(message)
        self.job = job


class MeshRefusedError(MeshRequestError):
    """A request that the portal refused: an error in it, or a missing permission."""


class MeshQuotaError(MeshRequestError):
    """A request beyond a quota, a budget or the number of child jobs."""


class MeshCapacityError(MeshRequestError):
    """A request for which there are no free machines."""


class MeshTimeoutError(MeshRequestError, TimeoutError):
    """A request whose workers were not ready in time."""


class MeshEndedError(MeshRequestError):
    """A request whose child job ended before its workers were ready, or was cancelled."""


class RequestedMesh:
    """A `HostMesh` whose hosts are a child job's: it has all methods of one, and `release()`.

    In a `with` statement it is released at the end. Actors receive it as a `HostMesh`.
    """

    def __init__(self, meshes: Meshes, portal: Portal, name: str, job: dict[str, Any]) -> None:
        self.name = name
        # The number and the page of the child job.
        self.job: int = job["id"]
        self.url: str = job["url"]
        self._meshes, self._portal, self._submitted = meshes, portal, job
        self.host_mesh = meshes[name]

    def release(self) -> None:
        """End the mesh: its processes, its workers and the child job. A second call does nothing.

        Actors clean up first. Returns when the child job has ended.
        """
        if self._meshes.end(self.name):
            _end(self._portal, self.job)
            runner_module("base.process_end").disarm(self._submitted)

    def __enter__(self) -> RequestedMesh:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "host_mesh" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.host_mesh, name)

    def __reduce__(self) -> Any:
        return _itself, (self.host_mesh,)

    def __repr__(self) -> str:
        return f"<RequestedMesh {self.name!r}, job {self.job}>"


def request_mesh(
    meshes: Meshes,
    name: str,
    hosts: int,
    *,
    timeout: float,
    spec: Mapping[str, Any],
) -> RequestedMesh:
    """Submit the child job, wait until its workers listen, and attach them."""
    meshes.check_new(name)
    portal = Portal()
    process_end = runner_module("base.process_end")
    with process_end.undisturbed():
        job = _submit(portal, name, _content(name, hosts, spec))
        # The job's end would end it as well, but the job may go on without this driver.
        process_end.arm_last_act(job, lambda: _cancel(portal, job["id"]))
    try:
        attempt = _wait(portal, name, job, time.monotonic() + timeout, timeout)
        workers = _workers_of(attempt)
        meshes.attach_further(name, workers)
    except BaseException:
        # Also at Ctrl-C: nobody else would end it before this driver does.
        _cancel(portal, job["id"])
        process_end.disarm(job)
        raise
    return RequestedMesh(meshes, portal, name, job)


def _content(name: str, hosts: int, spec: Mapping[str, Any]) -> dict[str, Any]:
    block = {**spec.get("portal", {}), "driver": "parent", "meshes": {name: hosts}}
    return {"name": name, **spec, "portal": block}


def _submit(portal: Portal, name: str, content: dict[str, Any]) -> dict[str, Any]:
    # Without an answer nobody knows whether the job exists: the key makes a repetition safe.
    key = str(uuid.uuid4())
    try:
        answer = portal.post("", {"spec": content}, key)
    except OSError:
        answer = _post_again(portal, name, content, key)
    if answer.status == _CONFLICT:
        raise MeshQuotaError(f"mesh {name!r} was not requested: {answer.detail}")
    if answer.is_error:
        raise MeshRefusedError(f"mesh {name!r} was not requested: {answer.detail}")
    return answer.content


def _post_again(portal: Portal, name: str, content: dict[str, Any], key: str) -> Any:
    time.sleep(_LAST_PAUSE_S)
    try:
        return portal.post("", {"spec": content}, key)
    except OSError as error:
        url = os.environ["MPORTAL_URL"]
        raise MeshRefusedError(
            f"mesh {name!r} was not requested: this node cannot reach the portal at {url} ({error})"
        ) from error


def _wait(
    portal: Portal, name: str, job: dict[str, Any], deadline: float, timeout: float
) -> dict[str, Any]:
    """Return the running attempt of the child job, with its workers."""
    retry = runner_module("base.retry").Retry(_FIRST_PAUSE_S, _LAST_PAUSE_S)
    number = job["id"]
    while True:
        job = _read(portal, f"/{number}") or job
        if job["is_final"]:
            raise _ended(name, job)
        if job["status"] == "RUNNING":
            attempt = _running_attempt(portal, number)
            if attempt is not None:
                return attempt
        if time.monotonic() > deadline:
            raise _too_late(name, job, timeout)
        time.sleep(retry.next_pause_s())


def _read(portal: Portal, path: str) -> dict[str, Any] | None:
    """Return what the portal answers; None while it is away."""
    try:
        answer = portal.get(path)
    except OSError:
        return None
    if answer.is_error and answer.status <= _FORBIDDEN:
        raise MeshRefusedError(f"the portal refuses {path}: {answer.detail}")
    return None if answer.is_error else answer.content


def _running_attempt(portal: Portal, job: int) -> dict[str, Any] | None:
    found = _read(portal, f"/{job}/attempts") or {}
    attempt: dict[str, Any] = next(iter(found.get("results", [])), {})
    workers = attempt.get("workers", [])
    is_ready = workers and all(each["status"] in _READY for each in workers)
    return attempt if is_ready else None


def _workers_of(attempt: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the workers as the driver's plan names them."""
    service_id = runner_module("base.config").service_id
    scheme = "tls" if os.environ.get("HYPERACTOR_TLS_CERT") else "tcp"
    return [
        {
            "rank": each["rank"],
            "python": each["python"],
            "address": f"service<{service_id(attempt['id'], each['rank'])}>"
            f"@{scheme}://{each['address']}",
        }
        for each in sorted(attempt["workers"], key=lambda each: int(each["rank"]))
    ]


def _ended(name: str, job: dict[str, Any]) -> MeshRequestError:
    said = " ".join(filter(None, [job["message"], job["hint"]])) or job["status_label"]
    kind = MeshCapacityError if job["stop_reason"] == "NO_CAPACITY" else MeshEndedError
    return kind(f"job {job['id']} of mesh {name!r} has ended: {said} See {job['url']}.", job["id"])


def _too_late(name: str, job: dict[str, Any], timeout: float) -> MeshRequestError:
    why = job["message"] or job["status_label"]
    kind: type[MeshRequestError] = MeshTimeoutError
    advice = "Give it more time with `timeout`."
    if job["wait_reason"] in _OVER_QUOTA:
        kind = MeshQuotaError
        advice = "Request fewer hosts, or have the quota raised; this job counts in it, too."
    elif job["wait_reason"] == "CAPACITY":
        kind = MeshCapacityError
        advice = "Request fewer or other hosts, or more time with `timeout`."
    return kind(
        f"mesh {name!r} was not ready after {timeout:g} s: {why} {advice} "
        f"Its job {job['id']} was cancelled.",
        job["id"],
    )


def _end(portal: Portal, job: int) -> None:
    """Wait until the workers' end has ended the child job; cancel it if that takes too long."""
    deadline = time.monotonic() + _RELEASE_S
    while time.monotonic() < deadline:
        found = _read(portal, f"/{job}")
        if found is not None and found["is_final"]:
            return
        time.sleep(_FIRST_PAUSE_S)
    _cancel(portal, job)


def _cancel(portal: Portal, job: int) -> None:
    try:
        portal.post(f"/{job}/actions/cancel")
    except OSError:
        return  # the portal ends it with this driver


def _itself(host_mesh: Any) -> Any:
    return host_mesh
