"""Real runners answer for their own rank: where its Python programs stand."""

from __future__ import annotations

from tests.runner_harness import RunnerRig

PROGRAM = """
import os, pathlib, threading, time
def waits_for_nobody():
    while not pathlib.Path("done").exists():
        time.sleep(0.05)
print("ready", os.getpid(), flush=True)
waits_for_nobody()
"""


def test_each_rank_dumps_its_own_stacks_and_the_job_goes_on(make_rig) -> None:
    rig: RunnerRig = make_rig(nodes=2, run="python program.py")
    rig.write("program.py", PROGRAM)
    rig.start()
    rig.ingest.wait_for(lambda: len(rig.ingest.texts()) == 2, 60)
    rig.ingest.stacks = [{"id": 8, "rank": 1, "pid": None}, {"id": 9, "rank": 0, "pid": None}]
    rig.ingest.wait_for(
        lambda: len([f for f in rig.ingest.of_kind("stacks") if f.get("done")]) == 2, 60
    )
    for rank, ask in ((1, 8), (0, 9)):
        reported, end = rig.ingest.of_kind("stacks", rank)
        assert (reported["ask"], end["ask"]) == (ask, ask)
        assert "waits_for_nobody (program.py:" in reported["text"]
        (said,) = rig.ingest.texts(rank=rank)
        assert said == f"ready {reported['pid']}"
    rig.ingest.stacks = []
    rig.write("done", "")
    assert rig.ingest.end["reason"] == "COMPLETED"
    assert rig.ingest.holes == []
    rig.wait()
    assert rig.log(0) == rig.log(1) == ""


def test_a_job_without_python_says_so(make_rig) -> None:
    rig: RunnerRig = make_rig(run="while [ ! -e done ]; do sleep 0.1; done")
    rig.start()
    rig.ingest.stacks = [{"id": 3, "rank": 0, "pid": None}]
    rig.ingest.wait_for(lambda: rig.ingest.of_kind("stacks"), 60)
    (end,) = rig.ingest.of_kind("stacks")
    assert (end["done"], end["why"]) == (True, "No Python process of this job runs on rank 0.")
    rig.write("done", "")
    assert rig.ingest.end["reason"] == "COMPLETED"
    rig.wait()
