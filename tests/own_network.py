"""A network namespace from which a few ports of this machine are reached, and nothing else."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress

from tests.cuttable_relay import CuttableRelay

# Runs in the new network: its loopback, the ports, and nothing more.
KEEPER = """\
import json, socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
listeners = [socket.create_server(("127.0.0.1", port)) for port in json.loads(sys.argv[1])]
fds = [each.fileno() for each in listeners]
socket.send_fds(socket.socket(fileno=int(sys.argv[2])), [b"x"], fds)
sys.stdin.read()
"""


class OwnNetwork:
    """The network. A command after `prefix` runs in it; `close` ends it.

    `ports` are those of 127.0.0.1, there too. `relays` lead to them, in order; each can be cut.
    """

    def __init__(self, *ports: int) -> None:
        ours, theirs = socket.socketpair()
        unprivileged = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        keeper = [sys.executable, "-IS", "-c", KEEPER, json.dumps(ports), str(theirs.fileno())]
        with ours, theirs:
            self._keeper = subprocess.Popen(
                ["unshare", *unprivileged, "--net", *keeper],
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
            theirs.close()
            _, descriptors, *_ = socket.recv_fds(ours, 1, len(ports))
        self.relays = [
            CuttableRelay(socket.socket(fileno=descriptor), port)
            for descriptor, port in zip(descriptors, ports, strict=True)
        ]
        self.prefix = ["nsenter", f"--net=/proc/{self._keeper.pid}/ns/net"]
        if unprivileged:
            self.prefix += [f"--user=/proc/{self._keeper.pid}/ns/user", "--preserve-credentials"]

    def close(self) -> None:
        """End the network."""
        for relay in self.relays:
            relay.close()
        with self._keeper, suppress(OSError):
            self._keeper.communicate()
