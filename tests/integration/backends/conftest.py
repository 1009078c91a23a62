"""Rigs: one backend each, with everything taken down at the end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.local_isolation import jobs_get_own_user
from tests.integration.backends.rigs import FakeRig, LocalRig, Rig

_UNSHARE = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x00020000))"


@pytest.fixture(scope="session")
def jobs_can_start() -> None:
    """Skips where we are root of a container that refuses the mounts which root's jobs need."""
    probe = [sys.executable, "-c", _UNSHARE]
    if jobs_get_own_user() and subprocess.run(probe, check=False).returncode != 0:
        pytest.skip("root without the right to private mounts")


@pytest.fixture
def local(jobs_can_start: None, tmp_path: Path) -> Iterator[LocalRig]:
    rig = LocalRig(tmp_path / "home")
    yield rig
    rig.close()


@pytest.fixture(params=["local", "fake"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    if request.param == "local":
        local: LocalRig = request.getfixturevalue("local")
        return local
    return FakeRig(tmp_path / "fake")
