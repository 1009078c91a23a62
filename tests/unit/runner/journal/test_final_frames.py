"""The frames of a dead runner: its unacknowledged lines, and always its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.base.config import NodeFolder
from monarch_client.runner.journal.final_frames import read_final_frames
from monarch_client.runner.journal.journal import Journal
from monarch_client.runner.journal.recorder import Recorder

VERDICT = {"reason": "COMPLETED", "message": "The program finished.", "exit_code": 0}


@pytest.fixture
def folder(tmp_path) -> NodeFolder:
    made = NodeFolder(tmp_path)
    made.state.mkdir()
    return made


def record(folder: NodeFolder, *, acknowledged: int) -> None:
    """Write two lines and the end, and acknowledge the first frames."""
    journal = Journal(folder.journal)
    recorder = Recorder(journal, 0)
    for text in ("one", "two"):
        recorder.remark(text)
    recorder.write("end", **VERDICT)
    journal.acknowledge(journal.peek(10_000)[:acknowledged])


def words(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_final_frames(root)]


def test_a_verdict_is_left_even_if_everything_was_acknowledged(folder):
    record(folder, acknowledged=3)
    folder.verdict.write_text(json.dumps(VERDICT))
    (end,) = words(folder.root)
    assert end.items() >= {**VERDICT, "kind": "end", "rank": 0, "seq": 4}.items()


def test_an_unacknowledged_verdict_is_delivered_once(folder):
    record(folder, acknowledged=1)
    folder.verdict.write_text(json.dumps(VERDICT))
    assert [(frame["kind"], frame["seq"]) for frame in words(folder.root)] == [
        ("line", 2),
        ("end", 3),
    ]


@pytest.mark.parametrize("verdict", [None, "", "[]", "no json"])
def test_without_a_verdict_there_are_lines_alone(folder, verdict):
    record(folder, acknowledged=3)
    if verdict is not None:
        folder.verdict.write_text(verdict)
    assert words(folder.root) == []


def test_a_verdict_that_is_a_link_gives_nothing_away(folder):
    record(folder, acknowledged=3)
    (folder.root / "secret").write_text(json.dumps(VERDICT))
    folder.verdict.symlink_to(folder.root / "secret")
    assert words(folder.root) == []
