"""The files that are left of a cluster once it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.local import folders as local_folders
from jobs.backends.local.folders import remove_strays


def test_files_of_others_that_vanish_meanwhile_leave_none_of_the_users_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setattr(local_folders, "SHARED_DIRECTORIES", (tmp_path,))
    listed: Iterator[Path] = iter([tmp_path / "vanished", mine])
    monkeypatch.setattr(Path, "iterdir", lambda _: listed)
    remove_strays(mine.stat().st_uid)
    assert not mine.exists()
