"""The sync of folders through a session: when it scans them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from monarch_client.gateway import code_sync
from monarch_client.gateway.code_sync import CodeSync
from monarch_client.sync.scanning import ChangedMeanwhileError, Scanner, Snapshot
from monarch_client.sync.sending import Sent


class Sender:
    """A sender to a head node that has taken the trees in `sent`."""

    sent: list[str]
    is_stale = False

    def __init__(self, *_arguments: object) -> None:
        return

    def send(self, snapshot: Snapshot) -> Sent:
        """Take a tree, unless a file of it has changed."""
        if Sender.is_stale:
            Sender.is_stale = False
            raise ChangedMeanwhileError("train.py changes while it is read.")
        self.sent.append(snapshot.tree)
        return Sent(1, 1, 1, {}, "")


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Snapshot]:
    """Return the results of the scans."""
    found: list[Snapshot] = []
    scan = Scanner.scan

    def counted(scanner: Scanner) -> Snapshot:
        found.append(scan(scanner))
        return found[-1]

    def opened(*_arguments: object) -> Any:
        return SimpleNamespace(
            file=None, socket=SimpleNamespace(settimeout=print, sendall=None), close=lambda: None
        )

    monkeypatch.setattr(Sender, "sent", [], raising=False)
    monkeypatch.setattr(Sender, "is_stale", False)
    monkeypatch.setattr(code_sync, "CodeSender", Sender)
    monkeypatch.setattr(code_sync, "open_node_stream", opened)
    monkeypatch.setattr(Scanner, "scan", counted)
    monkeypatch.setenv("XDG_CACHE_HOME", "/nonexistent")
    return found


def test_a_change_that_a_watch_has_found_is_sent_without_another_scan(
    tmp_path: Path, scans: list[Snapshot]
) -> None:
    code = CodeSync(None, tmp_path)
    code.run()
    assert not code.is_changed()
    (tmp_path / "train.py").write_text("1")
    assert code.is_changed()
    assert code.run().changed == ("train.py",)
    assert (len(scans), Sender.sent) == (3, [scans[0].tree, scans[2].tree])
    (tmp_path / "train.py").write_text("2")
    code.run()
    assert Sender.sent[2] == scans[3].tree


def test_a_found_change_that_is_gone_when_it_is_sent_is_scanned_again(
    tmp_path: Path, scans: list[Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = CodeSync(None, tmp_path)
    assert code.is_changed()
    monkeypatch.setattr(Sender, "is_stale", True)
    (tmp_path / "train.py").write_text("1")
    code.run()
    assert Sender.sent == [scans[1].tree]
