"""The files that a setup leaves in its work directory, and unreadable ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.runner.node import setup_stamp
from monarch_client.runner.node.setup_stamp import changes, listing


def test_files_that_came_went_or_changed_are_named_by_their_outermost_folder(
    tmp_path: Path,
) -> None:
    for name in ("kept", "gone", "changed"):
        (tmp_path / name).write_text(name)
    before = listing(tmp_path)
    (tmp_path / "gone").unlink()
    (tmp_path / "changed").write_text("longer than before")
    (tmp_path / "new" / "deep").mkdir(parents=True)
    (tmp_path / "new" / "deep" / "x").touch()
    assert changes(before, listing(tmp_path)) == ["changed", "gone", "new"]


def test_what_python_leaves_by_importing_is_no_change(tmp_path: Path) -> None:
    before = listing(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").touch()
    assert changes(before, listing(tmp_path)) == []


def test_a_folder_that_cannot_be_read_counts_as_changed_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = listing(tmp_path)

    def refuse(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(setup_stamp.os, "scandir", refuse)
    (change,) = changes(before, listing(tmp_path))
    assert "Permission denied" in change
    assert changes(listing(tmp_path), listing(tmp_path)) != []
