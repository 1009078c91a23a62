"""One node: a PID 1 with network, host name, processes and local disk of its own, and slurmd.

`python -m tests.cluster.rig.node NAME` starts it and ends as soon as it runs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.rig import daemons, network, places
from tests.cluster.rig.mounts import empty_temporary_folders
from tests.cluster.rig.spaces import (
    NEW_MOUNTS,
    NEW_NAMES,
    NEW_NETWORK,
    NEW_PIDS,
    mount,
    set_host_name,
    unshare,
)


def power_on(node: str) -> None:
    """Start `node`. It is a child of the rig's first process once this has ended."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.rig.node", node],
        cwd=places.CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{node} does not start: {done.stderr[-2000:]}")


def power_off(node: str) -> None:
    """End all processes of the node and its network at once. A repetition does nothing."""
    file = places.NODE_PIDS / node
    try:
        pid = int(file.read_text())
    except FileNotFoundError:
        return
    file.unlink()
    os.kill(pid, signal.SIGKILL)
    daemons.await_condition(f"the end of {node}", lambda: not Path(f"/proc/{pid}").exists())


def main(node: str) -> None:
    pid_reader, pid_writer = os.pipe()
    ready, plugged = os.pipe()
    if os.fork() == 0:
        os.close(plugged)
        _enter(node, pid_writer, ready)
    pid = int(os.read(pid_reader, 32))
    network.plug_in(node, pid)
    (places.NODE_PIDS / node).write_text(str(pid))
    os.write(plugged, b"x")


def _enter(node: str, pid_writer: int, ready: int) -> None:
    unshare(NEW_MOUNTS | NEW_NAMES | NEW_NETWORK | NEW_PIDS)
    if pid := os.fork():
        os.write(pid_writer, str(pid).encode())
        os._exit(0)
    try:
        _live(node, ready)
    finally:
        os._exit(1)


def _live(node: str, ready: int) -> None:
    _print_to(daemons.log_file(node))
    if not os.read(ready, 1):
        return
    os.setsid()
    mount("-t", "proc", "proc", "/proc")
    mount("-t", "tmpfs", "-o", "mode=1777", "rig", str(places.NODE_LOCAL))
    (places.NODE_LOCAL / "slurmd").mkdir()
    empty_temporary_folders()
    set_host_name(node)
    network.bring_up_inside(node)
    slurmd = daemons.start("slurmd", "-D", "-N", node, log=node)
    # A first process has every orphan for a child.
    while os.wait()[0] != slurmd.pid:
        pass


def _print_to(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for here, there in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(here, there)


if __name__ == "__main__":
    main(sys.argv[1])
