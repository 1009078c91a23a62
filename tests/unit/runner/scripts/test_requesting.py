"""Requests of a driver for a further mesh, against answers of a portal."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from monarch_client.runner.base.config import service_id
from monarch_client.runner.scripts import mportal_runtime
from monarch_client.runner.scripts.mportal_runtime import requesting
from monarch_client.runner.scripts.mportal_runtime.portal import Answer
from tests.each_case import check_each
from tests.programs import CHECKOUT

pytestmark = pytest.mark.feature("S1.5")
JOB = {
    "id": 7,
    "url": "http://portal/rl/jobs/7",
    "status": "QUEUED",
    "status_label": "Queued",
    "is_final": False,
    "wait_reason": "",
    "stop_reason": "",
    "message": "",
    "hint": "",
}
RUNNING = {**JOB, "status": "RUNNING"}
WORKER = {"rank": 0, "status": "RUNNING", "address": "10.0.0.7:22222", "python": "3.11"}
ATTEMPT = {"results": [{"id": 31, "workers": [{**WORKER, "rank": 1}, WORKER]}]}
# The state of the child job, the error that the driver gets, and words of its message.
FAILURES: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"wait_reason": "QUOTA", "message": "Quota of project rl: 4 of 4 nodes are used."},
        mportal_runtime.MeshQuotaError,
        "4 of 4 nodes",
    ),
    ({"wait_reason": "BUDGET", "message": "Spent."}, mportal_runtime.MeshQuotaError, "Spent."),
    (
        {"wait_reason": "CAPACITY", "message": "No node is free."},
        mportal_runtime.MeshCapacityError,
        "fewer or other hosts",
    ),
    ({"status": "SETTING_UP", "status_label": "Setting up"}, TimeoutError, "Setting up"),
    (
        {"is_final": True, "stop_reason": "NO_CAPACITY", "message": "No H100 anywhere."},
        mportal_runtime.MeshCapacityError,
        "No H100 anywhere.",
    ),
    (
        {"is_final": True, "stop_reason": "SETUP", "message": "Setup failed.", "hint": "Fix it."},
        mportal_runtime.MeshEndedError,
        "Setup failed. Fix it. See http://portal/rl/jobs/7",
    ),
]


class StandInPortal:
    """A portal with one child job; an answer of None is a connection that breaks."""

    def __init__(self, *jobs: dict[str, Any] | None, submitted: Answer | None = None) -> None:
        self._jobs = list(jobs)
        self._submitted = submitted or Answer(201, JOB)
        self.posts: list[tuple[str, Any, str]] = []

    def get(self, path: str) -> Answer:
        if path.endswith("/attempts"):
            return Answer(200, ATTEMPT)
        job = self._jobs.pop(0) if len(self._jobs) > 1 else self._jobs[0]
        if job is None:
            raise OSError("away")
        return Answer(200, job)

    def post(self, path: str, content: Any = None, key: str = "") -> Answer:
        self.posts.append((path, content, key))
        return Answer(202, JOB) if path else self._submitted


class StandInMeshes:
    """Meshes that record which workers are attached."""

    def __init__(self) -> None:
        self.attached: dict[str, Any] = {}

    def check_new(self, name: str) -> None:
        pass

    def attach_further(self, name: str, workers: Any) -> None:
        self.attached[name] = workers

    def __getitem__(self, name: str) -> Any:
        return self.attached[name]


def request(
    portal: StandInPortal, monkeypatch: pytest.MonkeyPatch, timeout: float = 0.0, spec: Any = None
) -> Any:
    monkeypatch.setattr(requesting, "Portal", lambda: portal)
    meshes: Any = StandInMeshes()
    return requesting.request_mesh(meshes, "generators", 2, timeout=timeout, spec=spec or {})


def test_workers_of_a_running_child_are_attached_in_rank_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HYPERACTOR_TLS_CERT", "leaf.crt")
    # The portal restarts in between.
    portal = StandInPortal(JOB, None, RUNNING)
    spec = {"resources": {"cpus": 2}, "portal": {"queue": "night"}}
    mesh = request(portal, monkeypatch, 30, spec)
    assert [each["address"] for each in mesh.host_mesh] == [
        f"service<{service_id(31, rank)}>@tls://10.0.0.7:22222" for rank in (0, 1)
    ]
    [(_, content, key)] = portal.posts
    assert content["spec"] == {
        "name": "generators",
        "resources": {"cpus": 2},
        "portal": {"queue": "night", "driver": "parent", "meshes": {"generators": 2}},
    }
    assert key


def test_each_failure_has_a_type_names_the_cause_and_leaves_no_job_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check(state: dict[str, Any], kind: type[Exception], words: str) -> None:
        portal = StandInPortal({**JOB, **state})
        with pytest.raises(kind) as caught:
            request(portal, monkeypatch)
        assert words in str(caught.value)
        assert isinstance(caught.value, mportal_runtime.MeshRequestError)
        assert caught.value.job == JOB["id"]
        assert portal.posts[-1][0] == "/7/actions/cancel"

    check_each(FAILURES, check)


def test_a_refusal_of_the_portal_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = {"detail": "Invalid.", "errors": [{"message": "resources.cpus must be a number."}]}
    with pytest.raises(mportal_runtime.MeshRefusedError, match=r"cpus must be a number"):
        request(StandInPortal(JOB, submitted=Answer(422, errors)), monkeypatch)
    too_many = {"detail": "Job 3 has 100 child jobs that have not ended."}
    with pytest.raises(mportal_runtime.MeshQuotaError, match=r"100 child jobs"):
        request(StandInPortal(JOB, submitted=Answer(409, too_many)), monkeypatch)


DRIVER = """
import os
from tests.unit.runner.scripts import test_requesting as stand_ins

class Portal(stand_ins.StandInPortal):
    def get(self, path):
        if WAITS:
            os.kill(os.getpid(), NUMBER)
        return super().get(path)

    def post(self, path, content=None, key=""):
        print(path, flush=True)
        return super().post(path, content, key)

stand_ins.requesting.Portal = lambda: Portal(stand_ins.RUNNING)
mesh = stand_ins.requesting.request_mesh(stand_ins.StandInMeshes(), "a", 2, timeout=9, spec={})
os.kill(os.getpid(), NUMBER)
"""


def test_a_signal_to_the_driver_alone_cancels_the_job_of_its_mesh() -> None:
    def cancels(is_waiting: bool, number: signal.Signals) -> None:
        program = DRIVER.replace("NUMBER", str(int(number))).replace("WAITS", str(is_waiting))
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        assert (done.returncode, done.stdout.split()) == (-number, ["/7/actions/cancel"])

    check_each(itertools.product([True, False], [signal.SIGTERM, signal.SIGHUP]), cancels)
