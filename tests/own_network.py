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
listeners = []
for host, port in json.loads(sys.argv[1]):
    if host != "127.0.0.1":
        subprocess.run(["ip", "addr", "add", f"{host}/32", "dev", "lo"], check=True)
    listeners.append(socket.create_server((host, port)))
fds = [each.fileno() for each in listeners]
socket.send_fds(socket.socket(fileno=int(sys.argv[2])), [b"x"], fds)
sys.stdin.read()
"""


class OwnNetwork:
    """The network. A command after `prefix` runs in it; `close` ends it.

    `ports` are those of 127.0.0.1, under the same numbers; (host, port) gives another address to
    one. `relays` lead to them, in their order, and can be cut.
    """

    def __init__(self, *ports: int | tuple[str, int]) -> None:
        doors = [("127.0.0.1", port) if isinstance(port, int) else port for port in ports]
        ours, theirs = socket.socketpair()
        unprivileged = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        keeper = [sys.executable, "-IS", "-c", KEEPER, json.dumps(doors), str(theirs.fileno())]
        with ours, theirs:
            self._keeper = subprocess.Popen(
                ["unshare", *unprivileged, "--net", *keeper],
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
            theirs.close()
            _, descriptors, *_ = socket.recv_fds(ours, 1, len(doors))
        self.relays = [
            CuttableRelay(socket.socket(fileno=descriptor), port)
            for descriptor, (_, port) in zip(descriptors, doors, strict=True)
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
