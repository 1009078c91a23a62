"""Task contexts of a job on two nodes, as real runners report them."""

from __future__ import annotations

from typing import Any

from tests.runner_harness import RunnerRig

PROGRAM = """
import os
from pathlib import Path
from monarch_client.context import JobContext

def nap(number):
    import time
    print("a line of a task")
    while not Path("done").exists():
        time.sleep(0.05)

with JobContext(resources={"CPU": 1}) as context:
    context.get([context.create_task(nap, (number,)) for number in range(3)])
"""


def counts(frame: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    (context,) = frame["contexts"]
    rows = context["tasks"]
    return [(row["name"], row["pending"], row["running"], row["finished"]) for row in rows]


def test_every_node_reports_its_tasks_up_to_the_last_state(make_rig) -> None:
    rig: RunnerRig = make_rig(nodes=2, run="python program.py")
    rig.write("program.py", PROGRAM)
    rig.start()
    for rank in (0, 1):
        rig.ingest.wait_for(
            lambda rank=rank: any(
                each["rank"] == rank and counts(each) == [("nap", 2, 1, 0)]
                for each in rig.ingest.tasks
            ),
            60,
        )
    rig.write("done", "")
    assert rig.ingest.end["reason"] == "COMPLETED"
    rig.wait()
    for rank in (0, 1):
        last = [each for each in rig.ingest.tasks if each["rank"] == rank][-1]
        assert counts(last) == [("nap", 0, 0, 3)]
        assert last["contexts"][0]["is_open"] is False
    lines = [each for each in rig.ingest.frames if each.get("stream") == "stdout"]
    assert len(lines) == 6
    assert all(each["text"].startswith("(nap, pid ") for each in lines)
    assert rig.ingest.holes == []
