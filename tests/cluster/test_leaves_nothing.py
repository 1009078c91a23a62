"""A rig inside the rig, ended in every way: nothing of it is left to the machine that it ran on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster.rig import places
from tests.cluster.rig.spaces import run
from tests.waiting import eventually

KINDS = ("pid", "mnt", "net", "ipc", "uts")
READY = "echo ready; exec sleep 600"


def namespaces() -> set[str]:
    """Find every namespace that a living process is in."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        for kind in KINDS:
            with suppress(OSError):
                found.add(str((process / "ns" / kind).readlink()))
    return found


def surroundings() -> dict[str, object]:
    """Record what a rig could leave behind: mounts, interfaces, routes, files."""
    folders = ("/run", "/run/rig", "/tmp", "/dev/shm", "/etc", "/usr/local/bin", "/sys/fs/cgroup")
    return {
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "interfaces": run("ip", "-o", "link"),
        "routes": run("ip", "route"),
        "files": {folder: sorted(Path(folder).iterdir()) for folder in folders},
    }


def start(script: str, checkout: Path = places.CHECKOUT) -> subprocess.Popen[str]:
    """Start a rig of one node that runs `script`."""
    argv = [sys.executable, "-m", "tests.cluster.rig", "--nodes", "1", "--", "sh", "-c", script]
    return subprocess.Popen(
        argv,
        cwd=checkout,
        env={**os.environ, "RIG_LOGS": str(places.LOGS.with_name("rig-inner"))},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def inner() -> Iterator[subprocess.Popen[str]]:
    """Start a rig that is up and waits."""
    process = start(READY)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait(10)
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_rig_whose_first_process_is_ended(
    number: signal.Signals, request: pytest.FixtureRequest
) -> None:
    before, around = namespaces(), surroundings()
    inner: subprocess.Popen[str] = request.getfixturevalue("inner")
    assert len(namespaces() - before) > len(KINDS)
    if number is signal.SIGINT:
        os.killpg(inner.pid, number)  # as a terminal does
    else:
        inner.send_signal(number)
    assert inner.wait(30) != 0
    assert eventually(lambda: not namespaces() - before)
    assert {**surroundings(), "files": None} == {**around, "files": None}
    for folder, files in surroundings()["files"].items():
        assert folder == "/tmp" or files == around["files"][folder]


def test_the_commands_exit_code_is_the_rigs() -> None:
    with start("exit 7") as process:
        assert process.wait(60) == 7


def test_a_checkout_below_a_folder_that_the_rig_covers_stays_visible(tmp_path: Path) -> None:
    (tmp_path / ".cache").symlink_to(places.CHECKOUT / ".cache")
    shutil.copytree(places.CHECKOUT / "tests", tmp_path / "tests")
    with start("test -e tests/cluster/test_leaves_nothing.py", tmp_path) as process:
        assert process.wait(60) == 0
