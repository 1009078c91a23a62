"""Installing torchmonarch where attempts share a home, and one of them holds the lock."""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

import pytest

from monarch_client.runner.scripts import prepare_monarch


def test_a_lock_that_is_never_released_leads_to_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepare_monarch, "_is_here", lambda: False)
    monkeypatch.setattr(prepare_monarch, "PATIENCE_S", 0.1, raising=False)
    monkeypatch.setattr(sys, "version_info", (3, 11, 0))
    monkeypatch.setattr(prepare_monarch, "_install", lambda _, venv: not venv.mkdir())
    shared, note = tmp_path / "venvs", tmp_path / "state" / "venv"
    note.parent.mkdir()
    assert prepare_monarch.main("0.7.0", str(shared), str(note)) == 0
    [complete] = shared.glob("*/complete")
    complete.unlink()
    with complete.parent.with_name(f"{complete.parent.name}.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert prepare_monarch.main("0.7.0", str(shared), str(note)) == 0
    assert note.read_text() == str(tmp_path / "state" / "monarch")
    assert not complete.exists()
    assert "not waiting any longer" in capsys.readouterr().out


def test_what_is_installed_is_used_whichever_process_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepare_monarch, "_is_here", lambda: False)
    monkeypatch.setattr(prepare_monarch, "PATIENCE_S", 0.1)
    monkeypatch.setattr(prepare_monarch, "_install", lambda _, venv: not venv.mkdir())
    shared, note = tmp_path / "venvs", tmp_path / "note"
    assert prepare_monarch.main("0.7.0", str(shared), str(note)) == 0
    [venv] = (path.parent for path in shared.glob("*/complete"))
    capsys.readouterr()
    with venv.with_name(f"{venv.name}.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert prepare_monarch.main("0.7.0", str(shared), str(note)) == 0
    assert (note.read_text(), capsys.readouterr().out) == (str(venv), "")
