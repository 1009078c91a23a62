"""An sshd of a test's own, on a port of 127.0.0.1, which one key opens."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import eventually

SETTINGS = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PermitRootLogin yes
PasswordAuthentication no
UsePAM no
StrictModes no
PidFile none
"""
# As root sshd needs a folder that a machine without its service lacks: it gets one for itself.
PRIVATE_RUN = """\
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, PRIVATE = 0x00020000, 1 << 18 | 1 << 14
assert libc.unshare(NEW_MOUNTS) == 0
assert libc.mount(b"none", b"/", None, PRIVATE, None) == 0
assert libc.mount(b"run", b"/run", b"tmpfs", 0, None) == 0
os.mkdir("/run/sshd")
os.execv(sys.argv[1], sys.argv[1:])
"""


class SshServer:
    """A running sshd. `access` is what ssh needs, as SkyPilot describes it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        for name in ("key", "host_key"):
            file = str(folder / name)
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file]
            subprocess.run(command, check=True)
        self.port = free_port()
        settings = folder / "sshd_config"
        settings.write_text(SETTINGS.format(port=self.port, folder=folder))
        sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
        assert sshd, "install openssh-server"
        command = [sshd, "-D", "-e", "-f", str(settings)]
        if os.getuid() == 0:
            command = [sys.executable, "-IS", "-c", PRIVATE_RUN, *command]
        with (folder / "sshd.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        assert eventually(lambda: is_open(self.port)), (folder / "sshd.log").read_text()

    def access(self, port: int | None = None) -> dict[str, Any]:
        """Return how ssh reaches it, perhaps through another port."""
        return {
            "host": "127.0.0.1",
            "port": port or self.port,
            "user": getpass.getuser(),
            "key": (self._folder / "key").read_text(),
            "proxy_command": "",
        }

    @property
    def log(self) -> str:
        """The messages of sshd."""
        return (self._folder / "sshd.log").read_text(errors="replace")

    def close(self) -> None:
        """End it."""
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
