"""Reports of task contexts: read from files, sent when they change, cut until they fit."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from monarch_client.runner.base.config import NodeFolder
from monarch_client.runner.journal.samples import Samples
from monarch_client.runner.place import Place
from monarch_client.runner.probes import task_reports
from monarch_client.runner.probes.task_reports import (
    MOST_BYTES,
    MOST_CONTEXTS,
    TaskReports,
    fitting,
)
from monarch_client.runner.vocabulary.frames import TASKS, state_line
from tests.task_frames import context, count, failure


class Node:
    """A node with reports, whose thread does not run."""

    def __init__(self, root: Path) -> None:
        unused = cast("Any", None)
        self.samples = Samples()
        folder = NodeFolder(root)
        self.folder = folder.tasks
        self.folder.mkdir(parents=True)
        self.reports = TaskReports(Place(unused, 3, folder, unused, unused, unused, self.samples))

    def write(self, name: str, text: str, changed_s: int) -> None:
        path = self.folder / f"{name}.json"
        path.write_text(text)
        os.utime(path, (changed_s, changed_s))

    def look(self) -> list[dict[str, Any]]:
        self.reports.look()
        return [json.loads(line) for line in self.samples.take()]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_changed_context_is_reported_and_an_unchanged_one_is_not(node) -> None:
    node.write("71-1", json.dumps(context(name="")), 1)
    (frame,) = node.look()
    assert (frame["rank"], frame["kind"], frame["left_out"]) == (3, TASKS, 0)
    assert [each["name"] for each in frame["contexts"]] == ["71-1"]
    assert node.look() == []
    node.write("71-1", json.dumps(context(name="", objects=5)), 2)
    (frame,) = node.look()
    assert frame["contexts"][0]["objects"] == 5


def test_the_latest_contexts_of_many_are_reported_and_the_others_counted(node) -> None:
    for number in range(MOST_CONTEXTS + 3):
        node.write(f"71-{number}", json.dumps(context()), number)
    (frame,) = node.look()
    assert len(frame["contexts"]) == MOST_CONTEXTS
    assert frame["contexts"][0]["name"] == f"71-{MOST_CONTEXTS + 2}"
    assert frame["left_out"] == 3
    assert len(list(node.folder.iterdir())) == MOST_CONTEXTS


def test_what_is_no_summary_costs_no_other_report(node) -> None:
    node.write("71-1", json.dumps(context()), 1)
    node.write("72-1", "[1, 2", 2)
    node.write("73-1", json.dumps({"tasks": 7}), 3)
    node.write("74-1", "[]", 4)
    (frame,) = node.look()
    assert {each["name"] for each in frame["contexts"]} == {"71-1", "73-1"}


def test_a_report_that_is_too_large_has_fewer_rows_and_counts_them() -> None:
    large = [
        context(
            name=f"71-{number}",
            tasks=[count(f"{'n' * 90}{row}") for row in range(100)],
            failures=[failure(trace="\x01" * 2500) for _ in range(10)],
        )
        for number in range(16)
    ]
    line = fitting(large, 16, lambda content: state_line(0, TASKS, content))
    assert len(line) <= MOST_BYTES
    frame = json.loads(line)
    assert len(frame["contexts"]) == 16
    for each in frame["contexts"]:
        assert len(each["tasks"]) + each["tasks_left_out"] == 100
        assert len(each["failures"]) + each["failures_left_out"] == 12


@pytest.mark.parametrize("kind", ["fifo", "endless link", "dangling link", "deep", "infinite"])
def test_a_file_that_is_no_report_stops_no_other_report(node, kind) -> None:
    node.write("71-1", json.dumps(context()), 1)
    path = node.folder / "72-1.json"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind.endswith("link"):
        path.symlink_to("/dev/zero" if kind == "endless link" else "/nowhere")
    else:
        node.write("72-1", "[" * 100_000 if kind == "deep" else '{"pid": 1e999}', 2)
    found: list[dict[str, Any]] = []
    looking = threading.Thread(target=lambda: found.extend(node.look()), daemon=True)
    looking.start()
    looking.join(10)
    assert [each["name"] for frame in found for each in frame["contexts"]] == ["71-1"]


def test_the_last_report_waits_a_bounded_time_for_the_lock(node, monkeypatch) -> None:
    monkeypatch.setattr(task_reports, "LAST_LOOK_S", 0.05)
    node.write("71-1", json.dumps(context()), 1)
    with node.reports._lock:
        last = threading.Thread(target=node.reports.look_last, daemon=True)
        last.start()
        last.join(10)
        assert not last.is_alive()
