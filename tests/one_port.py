"""A network in which one port of this machine is reached, and nothing else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress

from tests.cuttable_relay import CuttableRelay

# Runs in the new network: its loopback, the port, and nothing more.
KEEPER = """\
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
socket.send_fds(socket.socket(fileno=int(sys.argv[2])), [b"x"], [listener.fileno()])
sys.stdin.read()
"""


class OnePort:
    """The network. A command after `prefix` runs in it; `relay` can cut it; `close` ends it."""

    def __init__(self, port: int) -> None:
        ours, theirs = socket.socketpair()
        unprivileged = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        python = [sys.executable, "-IS", "-c", KEEPER, str(port), str(theirs.fileno())]
        with ours, theirs:
            self._keeper = subprocess.Popen(
                ["unshare", *unprivileged, "--net", *python],
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
            theirs.close()
            _, (descriptor, *_), *_ = socket.recv_fds(ours, 1, 1)
        self.relay = CuttableRelay(socket.socket(fileno=descriptor), port)
        self.prefix = ["nsenter", f"--net=/proc/{self._keeper.pid}/ns/net"]
        if unprivileged:
            self.prefix += [f"--user=/proc/{self._keeper.pid}/ns/user", "--preserve-credentials"]

    def close(self) -> None:
        """End the network."""
        self.relay.close()
        with self._keeper, suppress(OSError):
            self._keeper.communicate()
