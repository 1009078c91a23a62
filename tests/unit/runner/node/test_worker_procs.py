"""A node sees which processes of meshes have gone, from what its kernel lists."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.node.worker_procs import WorkerProcs, children_of, proc_name_of
from monarch_client.runner.vocabulary.node_state import NodeState
from tests.runner_harness import wait_until

PARENT = """
import subprocess, sys
child = subprocess.Popen(["sleep", "60"], env={"HYPERACTOR_MESH_BOOTSTRAP_MODE": sys.argv[1]})
print(child.pid, flush=True)
sys.stdin.readline()
child.kill()
child.wait()
print("gone", flush=True)
sys.stdin.readline()
"""


def bootstrap(mode: object) -> str:
    return base64.b64encode(json.dumps(mode).encode()).decode()


PROC = {"Proc": {"proc_id": {"id": {"uid": "trainers<p1>"}, "location": {}}}}


@pytest.mark.parametrize(
    ("mode", "names"), [(bootstrap(PROC), ["trainers<p1>"]), (bootstrap({"Proc": []}), None)]
)
def test_children_that_go_are_named_while_their_parent_lives(
    mode: str, names: list[str] | None
) -> None:
    loop = MainLoop()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdin and parent.stdout
        child = int(parent.stdout.readline())
        assert children_of(parent.pid) == {child}
        # A process has no environment yet while it is being loaded.
        wait_until(Path(f"/proc/{child}/environ").read_bytes)
        procs = WorkerProcs(loop, lambda: parent.pid)
        procs.on_gone = loop.stop
        procs.start()
        assert procs.gone == 0
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "gone\n"
        loop.run()
        assert (procs.gone, procs.gone_names) == (1, names)
        procs.stop()


def test_a_process_that_is_gone_has_no_children() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert children_of(ended.pid) == set()
    assert ended.pid not in children_of(os.getpid())


def test_a_process_of_no_mesh_has_no_name() -> None:
    assert proc_name_of(os.getpid()) == ""


def test_a_proc_has_ended_if_it_is_named_or_if_names_are_not_known_and_one_has() -> None:
    assert not NodeState().has_proc_ended("p1")
    assert NodeState(procs_gone=1).has_proc_ended("p1")
    named = NodeState(procs_gone=2, gone_names=["p2"])
    assert (named.has_proc_ended("p1"), named.has_proc_ended("p2")) == (False, True)
