"""The rig's first process: it brings everything up, runs one command, and ends all with itself.

Its end is the end of its PID namespace: the kernel kills every process in it, however the first one
went, and mounts and networks go with the last process in them.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from types import FrameType

from tests.cluster.rig import daemons, login, mounts, network, node, places, skypilot, slurm
from tests.cluster.rig.package_proxy import fork_proxy
from tests.cluster.rig.spaces import (
    NEW_IPC,
    NEW_MOUNTS,
    NEW_NAMES,
    NEW_NETWORK,
    set_host_name,
    unshare,
)

# After a signal the command may clean up for so long.
GRACE_S = 20


def live(node_count: int, command: Sequence[str]) -> int:
    """Bring the rig up, run `command` in it, and return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command as well
    mounts.make_folders_on_disk()
    channel = fork_proxy()
    unshare(NEW_MOUNTS | NEW_NAMES | NEW_IPC | NEW_NETWORK)
    set_host_name(slurm.CONTROLLER)
    mounts.make_private_mounts()
    network.make_bridge()
    with network.proxy_listener() as listener:
        socket.send_fds(channel, [b"x"], [listener.fileno()])
    nodes = places.node_names(node_count)
    _bring_up(nodes)
    places.MACHINE_FILE.write_text(json.dumps({"nodes": nodes}))
    return _run(command)


def _bring_up(nodes: tuple[str, ...]) -> None:
    login.write_accounts(nodes)
    login.write_programs()
    skypilot.install_cloud()
    skypilot.prepare_home(places.HOME)
    slurm.write_configuration(nodes)
    slurm.start_munged()
    login.start_sshd()
    slurm.start_controller()
    for each in nodes:
        node.power_on(each)
    daemons.await_condition("idle nodes", lambda: slurm.states() == dict.fromkeys(nodes, "idle"))


def _run(command: Sequence[str]) -> int:
    environment = {**os.environ, "HOME": str(places.HOME)}
    with_default_interrupt = ["env", "--default-signal=INT", *command]
    child = subprocess.Popen(with_default_interrupt, env=environment, cwd=places.CHECKOUT)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        signal.alarm(GRACE_S)  # its own end, should the command not follow
        child.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(128 + signal.SIGTERM))
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
