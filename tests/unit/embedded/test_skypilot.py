"""SkyPilot's server as a part: when it is wanted, what it is given, what is left of it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from monarch_portal.embedded import child, skypilot_server
from monarch_portal.embedded.errors import EmbeddedError
from monarch_portal.embedded.skypilot_paths import SkyPilotPaths
from monarch_portal.embedded.skypilot_server import MARK, SkyPilotServer, WholeGroup
from tests.waiting import eventually

# A stand-in for the server: it records how it was started, starts a child, and waits.
STAND_IN = """
import json, os, subprocess, sys, time
from pathlib import Path
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
child = subprocess.Popen(sleep, start_new_session=True)
seen = {"environment": dict(os.environ), "directory": os.getcwd(), "arguments": sys.argv[1:]}
Path("seen.unfinished").write_text(json.dumps(seen | {"child": child.pid}))
Path("seen.unfinished").rename("seen.json")
time.sleep(60)
"""


@pytest.fixture
def paths(tmp_path: Path) -> SkyPilotPaths:
    return SkyPilotPaths(tmp_path / "skypilot", tmp_path / "skypilot.log")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: SkyPilotPaths):
    """Replace `python -m sky.server.server` by the stand-in, and kill what is left of it."""
    real = child.start
    started: list[child.Process] = []

    def start(program: child.Program) -> child.Process:
        argv = [sys.executable, "-c", STAND_IN, *program.argv[1:]]
        assert program.env is not None
        process = real(replace(program, argv=argv))
        started.append(process)
        return process

    monkeypatch.setattr(skypilot_server.child, "start", start)
    yield
    skypilot_server.end_leftovers(paths.root)
    for process in started:
        process.wait(20)


def seen_by_server(paths: SkyPilotPaths) -> dict:
    file = paths.home / "seen.json"
    assert eventually(file.exists)
    return json.loads(file.read_text())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("file", "added"),
    [
        (".slurm/config", True),
        (".kube/config", True),
        (".aws/credentials", True),
        (".config/gcloud/application_default_credentials.json", True),
        (".sky/ssh_node_pools.yaml", True),
        (".sky/state.db", False),
        (".ssh/sky-key", False),
        ("calls.log", False),
    ],
)
def test_credentials_of_a_cloud_mean_that_one_was_added(
    paths: SkyPilotPaths, file: str, added: bool
) -> None:
    assert not paths.has_cloud()
    (paths.home / file).parent.mkdir(parents=True, exist_ok=True)
    assert not paths.has_cloud()
    (paths.home / file).touch()
    assert paths.has_cloud() is added
    assert skypilot_server.is_wanted(paths, "auto") is added
    assert skypilot_server.is_wanted(paths, "on")
    assert not skypilot_server.is_wanted(paths, "off")


def test_the_server_has_a_home_a_port_and_a_token_of_its_own(
    paths: SkyPilotPaths, stand_in: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the shell's, not the portal's")
    monkeypatch.setenv("SKYPILOT_DEBUG", "1")
    SkyPilotServer(paths, 7).start()
    seen = seen_by_server(paths)
    known = json.loads(paths.server_file.read_text())
    port = known["endpoint"].rpartition(":")[2]
    assert seen["arguments"][-2:] == ["--host=127.0.0.1", f"--port={port}"]
    environment = seen["environment"]
    assert seen["directory"] == environment["HOME"] == str(paths.home)
    assert environment["SKYPILOT_API_SERVER_LOCAL_PORT"] == port
    assert environment["SKYPILOT_DISABLE_USAGE_COLLECTION"] == "1"
    assert not {"AWS_SECRET_ACCESS_KEY", "SKYPILOT_DEBUG", "DATABASE_URL"} & set(environment)
    assert known["token"].startswith("sky_")
    assert known["token"] not in json.dumps(seen)
    assert (paths.home / "seen.json").stat().st_mode & 0o077 == 0
    for private in (paths.root, paths.home, paths.client_home, paths.server_file, paths.token_file):
        assert private.stat().st_mode & 0o077 == 0


def test_the_plugins_of_an_administrator_come_after_ours(
    paths: SkyPilotPaths, stand_in: None
) -> None:
    own = paths.home / ".sky" / "plugins.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("plugins:\n- class: their.Plugin\n")
    SkyPilotServer(paths, 7).start()
    plugins = yaml.safe_load(paths.plugins.read_text())["plugins"]
    assert [each["class"] for each in plugins] == [skypilot_server.PLUGIN, "their.Plugin"]
    assert plugins[0]["parameters"]["secret_file"] == str(paths.token_file)


def test_a_new_start_keeps_port_and_token_unless_the_port_was_taken(
    paths: SkyPilotPaths, stand_in: None
) -> None:
    server = SkyPilotServer(paths, 7)
    server.start()
    first = json.loads(paths.server_file.read_text())
    server.start()
    assert json.loads(paths.server_file.read_text()) == first
    with socket.create_server(("127.0.0.1", int(first["endpoint"].rpartition(":")[2]))):
        server.start()
    moved = json.loads(paths.server_file.read_text())
    assert moved["endpoint"] != first["endpoint"]
    assert moved["token"] == first["token"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_when_the_server_ends_all_that_it_started_ends(
    paths: SkyPilotPaths, stand_in: None, number: signal.Signals
) -> None:
    process = SkyPilotServer(paths, 7).start()
    below = seen_by_server(paths)["child"]
    assert is_alive(below)
    process.send_signal(number)
    assert eventually(lambda: process.poll() is not None)
    assert eventually(lambda: not is_alive(below))


def test_a_start_clears_what_a_killed_portal_left_and_nothing_else(
    paths: SkyPilotPaths, stand_in: None
) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    other = dict(os.environ) | {MARK: f"{paths.root}-of-another"}
    left = dict(os.environ) | {MARK: str(paths.root)}
    with subprocess.Popen(sleep, env=other) as stranger, subprocess.Popen(sleep, env=left) as own:
        SkyPilotServer(paths, 7).start()
        assert own.wait(20) == -signal.SIGKILL
        assert stranger.poll() is None
        stranger.kill()


def test_a_version_that_does_not_fit_is_said_before_anything_starts(
    paths: SkyPilotPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "0.13.0")
    with pytest.raises(EmbeddedError, match=r"SkyPilot 0\.13\.0 is installed .* pip install"):
        SkyPilotServer(paths, 7).start()
    assert not paths.root.exists()

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(EmbeddedError, match="SkyPilot is not installed"):
        SkyPilotServer(paths, 7).start()


def test_a_server_that_was_never_started_does_not_answer(paths: SkyPilotPaths) -> None:
    assert paths.endpoint == ""
    assert not skypilot_server.answers(paths)


def test_a_port_where_something_else_answers_is_no_server(paths: SkyPilotPaths) -> None:
    paths.root.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        paths.server_file.write_text(json.dumps({"endpoint": f"http://127.0.0.1:{port}"}))
    assert not skypilot_server.answers(paths)


def test_waiting_for_the_group_waits_for_the_server(tmp_path: Path) -> None:
    process = child.start(
        child.Program([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "log")
    )
    assert WholeGroup(process, tmp_path).wait(20) == 3
