"""Rigs: one backend each, with everything taken down at the end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.local_isolation import blocked_directories, jobs_get_own_user
from jobs.backends.local_python import PortalPython
from tests.integration.backends.rigs import FakeRig, LocalRig, Rig

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


@pytest.fixture(params=["local", "fake"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    if request.param == "local":
        local: LocalRig = request.getfixturevalue("local")
        return local
    return FakeRig(tmp_path / "fake")


@pytest.fixture(params=["fake"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    """A rig whose backend is a `ClusterKeeper`."""
    return FakeRig(tmp_path / "fake")
