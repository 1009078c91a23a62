"""A node sees which processes of meshes have gone, from what its kernel lists."""

from __future__ import annotations

import os
import subprocess
import sys

from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.node.worker_procs import WorkerProcs, children_of

PARENT = """
import subprocess, sys
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
sys.stdin.readline()
child.kill()
child.wait()
print("gone", flush=True)
sys.stdin.readline()
"""


def test_children_that_go_are_counted_while_their_parent_lives() -> None:
    loop = MainLoop()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdin and parent.stdout
        child = int(parent.stdout.readline())
        assert children_of(parent.pid) == {child}
        procs = WorkerProcs(loop, lambda: parent.pid)
        procs.on_gone = loop.stop
        procs.start()
        assert procs.gone == 0
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "gone\n"
        loop.run()
        assert procs.gone == 1
        procs.stop()


def test_a_process_that_is_gone_has_no_children() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert children_of(ended.pid) == set()
    assert ended.pid not in children_of(os.getpid())
