"""Rigs: one backend each, with everything taken down at the end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.local.isolation import blocked_directories, jobs_get_own_user
from jobs.backends.local.python import PortalPython
from jobs.backends.skypilot import backend as skypilot
from jobs.backends.skypilot import calls as skypilot_calls
from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from tests.integration.backends.rigs import GRACE_S, FakeRig, LocalRig, Rig
from tests.integration.backends.stub_rig import StubRig
from tests.sky_stub.process import StubProcess, free_port

_UNSHARE = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x00020000))"


@pytest.fixture(scope="session")
def private_mounts() -> bool:
    """Whether jobs get mounts of their own: root may be refused them in a container."""
    probe = [sys.executable, "-c", _UNSHARE]
    return jobs_get_own_user() and subprocess.run(probe, check=False).returncode == 0


@pytest.fixture
def local(private_mounts: bool) -> Iterator[LocalRig]:
    blocked = blocked_directories(PortalPython.current().prefixes)
    if jobs_get_own_user() and blocked and not private_mounts:
        pytest.skip(f"jobs cannot reach {blocked}, and this machine refuses private mounts")
    # Not tmp_path: other users must get through, as through a portal's home.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="mptest-") as name:
        Path(name).chmod(0o711)
        rig = LocalRig(Path(name))
        yield rig
        rig.close()


@pytest.fixture(scope="session")
def sky_port() -> int:
    return free_port()


@pytest.fixture(scope="session")
def sky_callers(
    sky_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[SkyCaller]]:
    """Yield two callers, as of two processes: each child takes seconds to import SkyPilot."""
    url = f"http://127.0.0.1:{sky_port}"
    homes = [tmp_path_factory.mktemp("sky-home") for _ in range(2)]
    callers = [SkyCaller(CallerOptions(home=home, endpoint=url)) for home in homes]
    # Called while no server listens, SkyPilot's client would consider it dead for 5 seconds.
    stub = StubProcess(tmp_path_factory.mktemp("stub"), port=sky_port)
    for caller in callers:
        caller.call("server_info", patience_s=60)
    stub.close()
    yield callers
    for caller in callers:
        caller.close()


@pytest.fixture
def stub_backend(
    sky_port: int,
    sky_callers: list[SkyCaller],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[StubRig]:
    """Yield SkyPilot's backend, on a stub that answers faster than Slurm."""
    monkeypatch.setattr(skypilot_calls, "FRESH_JOBS_S", 0.2)
    monkeypatch.setattr(skypilot, "CANCEL_AFTER_S", GRACE_S)
    stub = StubProcess(tmp_path / "stub", port=sky_port)
    rig = StubRig(tmp_path / "home", stub, sky_callers)
    yield rig
    rig.close()


@pytest.fixture(params=["local", "fake", "stub_backend"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    if request.param != "fake":
        other: Rig = request.getfixturevalue(request.param)
        return other
    return FakeRig(tmp_path / "fake")


@pytest.fixture(params=["fake", "stub_backend"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    """Return a rig whose backend is a `ClusterKeeper`."""
    if request.param != "fake":
        other: Rig = request.getfixturevalue(request.param)
        return other
    return FakeRig(tmp_path / "fake")
