"""A watch reports changes of a folder, with the system's notifications and without."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from monarch_client.sync import watching
from monarch_client.sync.watching import FolderWatch


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.mark.parametrize("notifies", [True, False])
def test_a_change_since_the_watch_was_made_is_noticed(tmp_path, stop, monkeypatch, notifies):
    monkeypatch.setattr(watching, "_LOOK_EVERY_S", 0.02)
    watch = FolderWatch(tmp_path, stop, notifies=notifies)
    assert watch.is_notified is notifies
    (tmp_path / "train.py").write_text("1")
    assert watch.wait((tmp_path / "train.py").exists)


def test_what_changes_in_caches_is_not_looked_at(tmp_path: Path, stop: threading.Event) -> None:
    (tmp_path / "__pycache__").mkdir()
    looks = []

    def look() -> bool:
        looks.append(1)
        return (tmp_path / "new.py").exists()

    watch = FolderWatch(tmp_path, stop)
    (tmp_path / "__pycache__" / "x.pyc").write_text("1")
    assert next(watch._notifications or iter(())) == set()
    (tmp_path / "new.py").write_text("1")
    assert watch.wait(look)
    assert len(looks) == 1


def test_without_the_package_the_folder_is_looked_at(tmp_path, stop, monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert not FolderWatch(tmp_path, stop).is_notified


def test_the_end_ends_the_wait(tmp_path, stop):
    watch = FolderWatch(tmp_path, stop)
    threading.Timer(0.05, stop.set).start()
    assert not watch.wait(lambda: False)
