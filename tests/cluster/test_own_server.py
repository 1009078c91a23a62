"""The SkyPilot server that a portal brings, and the way to it: the real ones, without any cloud."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from monarch_portal.embedded import child, skypilot_server
from monarch_portal.embedded.child import Process
from monarch_portal.embedded.skypilot_paths import SkyPilotPaths
from monarch_portal.embedded.skypilot_server import SkyPilotServer
from tests.waiting import eventually

START_S = 120
PATIENCE_S = 60.0
TASK = {"resources": {"cpus": "2+"}, "run": "true"}


class Installation:
    """A server on a home of its own."""

    def __init__(self, root: Path) -> None:
        self.paths = SkyPilotPaths(root / "skypilot", root / "skypilot.log")
        self._server = SkyPilotServer(self.paths, 11)
        self.process: Process | None = None

    def start(self) -> None:
        self.process = self._server.start()
        answers = eventually(lambda: skypilot_server.answers(self.paths), timeout_s=START_S)
        assert answers, child.tail(self.paths.log)

    def stop(self) -> None:
        if self.process is not None:
            child.stop(self.process, signals=(signal.SIGTERM,), patience_s=30)

    def options(self, token: str | None = None) -> CallerOptions:
        known = json.loads(self.paths.server_file.read_text())
        return CallerOptions(self.paths.client_home, known["endpoint"], token or known["token"])

    @property
    def pids(self) -> list[int]:
        return list(skypilot_server._marked(self.paths.root))


def ask(caller: SkyCaller, name: str, **args: Any) -> Any:
    """Return the answer of a call, which is made again for as long as SkyPilot is busy with it."""
    answers: list[Any] = []

    def has_answered() -> bool:
        with suppress(StillBusyError):
            answers.append(caller.call(name, args, PATIENCE_S))
        return bool(answers)

    assert eventually(has_answered, timeout_s=START_S), f"{name} is still busy"
    return answers[0]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    made = Installation(tmp_path_factory.mktemp("installation"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def caller(installation: Installation) -> Iterator[SkyCaller]:
    caller = SkyCaller(installation.options())
    yield caller
    caller.close()


def test_the_server_says_its_version_and_that_it_is_ours(caller: SkyCaller) -> None:
    info = ask(caller, "server_info")
    assert info["version"].startswith("0.14.")
    assert info["status"] == "healthy"
    assert info["has_plugin"]


@pytest.mark.parametrize("path", ["/api/status", "/dashboard", "/users", "/mportal/rates", "/docs"])
def test_who_has_no_token_gets_nothing(installation: Installation, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{installation.paths.endpoint}{path}", timeout=20)
    refused.value.close()
    assert refused.value.code == 401


def test_a_wrong_token_is_a_matter_of_permission(installation: Installation) -> None:
    caller = SkyCaller(installation.options(token="sky_wrong"))
    try:
        with pytest.raises(SkyPilotError) as raised:
            ask(caller, "status")
    finally:
        caller.close()
    assert raised.value.kind == "permission"


def test_without_clouds_all_lists_are_empty(caller: SkyCaller) -> None:
    assert ask(caller, "status") == []
    assert ask(caller, "status", names=["nowhere"]) == []
    assert ask(caller, "cost_report", days=3) == []
    assert ask(caller, "requests_of", cluster_name="nowhere") == []
    assert ask(caller, "gpus") == []


@pytest.mark.parametrize(
    ("name", "args", "kind"),
    [
        ("jobs", {"cluster_name": "nowhere"}, "not_found"),
        ("result", {"request_id": "nothing"}, "not_found"),
        ("result", {"request_id": ""}, "not_found"),
        ("validate", {"task": TASK | {"runn": "true"}}, "invalid"),
        ("validate", {"task": {"num_nodes": 0}}, "invalid"),
        ("plan", {"task": {"nonsense": 1}}, "invalid"),
    ],
)
def test_what_is_wrong_has_its_kind(
    caller: SkyCaller, name: str, args: dict[str, object], kind: str
) -> None:
    with pytest.raises(SkyPilotError) as raised:
        ask(caller, name, **args)
    assert raised.value.kind == kind


def test_a_launch_goes_on_as_a_request_and_its_failure_is_reported_later(caller: SkyCaller) -> None:
    request = ask(caller, "launch", cluster_name="mp-own-1", task=TASK)
    with pytest.raises(SkyPilotError) as raised:
        ask(caller, "result", request_id=request)
    assert raised.value.kind == "credentials"
    rows = ask(caller, "requests_of", cluster_name="mp-own-1")
    assert [(row["request_id"], row["name"], row["status"]) for row in rows] == [
        (request, "launch", "FAILED")
    ]


def test_each_cloud_that_is_not_enabled_says_why(caller: SkyCaller) -> None:
    found = {row["cloud"]: row for row in ask(caller, "clouds")}
    assert not found["slurm"]["enabled"]
    assert ".slurm/config" in found["slurm"]["reason"]


def test_a_killed_server_takes_all_of_its_own_along_and_comes_back(
    installation: Installation, caller: SkyCaller
) -> None:
    assert installation.process is not None
    os.kill(installation.process.pid, signal.SIGKILL)
    assert eventually(lambda: installation.process.poll() is not None)
    assert eventually(lambda: not installation.pids)
    with pytest.raises(SkyPilotError) as raised:
        ask(caller, "status")
    assert raised.value.kind == "server_away"
    installation.start()
    assert eventually(lambda: answers(caller))


def answers(caller: SkyCaller) -> bool:
    """Whether the server is back, and knows of no cluster."""
    try:
        return bool(ask(caller, "status") == [])
    except SkyPilotError as error:
        # Right after its start it may not take a call yet; callers repeat it.
        assert error.kind == "server_away", error
        return False


def test_stopping_leaves_no_process(tmp_path: Path) -> None:
    installation = Installation(tmp_path)
    installation.start()
    installation.stop()
    assert eventually(lambda: not installation.pids)
