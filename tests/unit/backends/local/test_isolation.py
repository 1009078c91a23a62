"""The paths to cover so that another user reaches what it needs, and nothing more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.local import isolation as local_isolation
from jobs.backends.local.isolation import NodeStart, blocked_directories, start_nodes
from jobs.errors import BackendError
from jobs.ground.disk_space import is_full_disk


def make(path: Path, mode: int) -> Path:
    path.mkdir(parents=True)
    path.chmod(mode)
    return path


@pytest.fixture
def top() -> Iterator[Path]:
    """Make a directory that all users reach, unlike a test's own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_nothing_is_blocked_where_every_job_may_pass(top: Path) -> None:
    make(top / "a", 0o711)
    path = make(top / "a" / "b", 0o700)
    assert blocked_directories([path]) == []


def test_the_topmost_closed_directory_is_the_blocked_one(top: Path) -> None:
    make(top / "closed", 0o700)
    make(top / "closed" / "also", 0o700)
    first, second = make(top / "closed/also/x", 0o755), make(top / "closed/y", 0o755)
    assert blocked_directories([first, second]) == [top / "closed"]


def test_a_full_disk_of_the_launcher_is_known_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = "node 0: [Errno 28] No space left on device: '/x/output-0'"
    monkeypatch.setattr(local_isolation, "_run_launcher", lambda *_: complaint)
    with pytest.raises(BackendError) as caught:
        start_nodes([], uid=None, needed=[], lock=0)
    assert is_full_disk(caught.value)


def test_a_refusal_of_private_mounts_names_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = make(tmp_path / "closed", 0o700)
    needed = make(closed / "python", 0o755)
    complaint = "node 0: [Errno 1] private mounts: Operation not permitted"
    monkeypatch.setattr(local_isolation, "_run_launcher", lambda *_: complaint)
    start = NodeStart(0, [], {}, "", "", "", "")
    with pytest.raises(BackendError, match="CAP_SYS_ADMIN"):
        start_nodes([start], uid=61184, needed=[needed], lock=0)
