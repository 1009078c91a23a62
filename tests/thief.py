"""A real process that takes the portal's port and answers in its place, or passes requests on.

It keeps every byte that it receives, and acknowledges frames that never reach a portal.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from io import FileIO
from pathlib import Path
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET, socket

from monarch_client.runner.base.listening_sockets import sockets_listening_at
from tests.waiting import eventually

CHECKOUT = Path(__file__).resolve().parent.parent
# Of no account, no server and no job.
A_STRANGER = 61070
ANSWER = b'{"acked": {"0": 1000000, "1": 1000000}, "machine": "", "port": 1, "uid": 0, "mac": "00"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Thief:
    """The process, while it is entered. `loot` holds the bytes it has received.

    `relay_to`: a port to pass everything on to. `uid`: the process's owner; root alone may choose.
    """

    def __init__(
        self,
        port: int,
        folder: Path,
        *,
        relay_to: int = 0,
        uid: int = 0,
        address: str = "127.0.0.1",
    ) -> None:
        self.port = port
        self._address = address
        self._loot = folder / f"loot-{port}"
        self._loot.touch()
        self._loot.chmod(0o666)
        self._arguments = [address, str(port), str(self._loot), str(relay_to)]
        self._uid = uid or os.geteuid()

    def __enter__(self) -> Thief:
        code = "from tests.thief import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *self._arguments, str(self._uid)], cwd=CHECKOUT
        )
        assert eventually(lambda: sockets_listening_at(self._address, self.port))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def loot(self) -> bytes:
        return self._loot.read_bytes()

    @property
    def was_called(self) -> bool:
        return bool(self.loot)


def main() -> None:
    address, port, loot, relay_to, uid = sys.argv[1:]
    record = FileIO(loot, "ab")
    if int(uid) != os.geteuid():
        os.setresuid(int(uid), int(uid), int(uid))
    listener = socket(AF_INET6 if ":" in address else AF_INET)
    listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listener.bind((address, int(port)))
    listener.listen(64)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_serve, args=(client, record, int(relay_to)), daemon=True).start()


def _serve(client: socket, record: FileIO, relay_to: int) -> None:
    with suppress(OSError), client:
        if not relay_to:
            while data := client.recv(65536):
                record.write(data)
                client.sendall(HEAD % len(ANSWER) + ANSWER)
            return
        with socket() as portal:
            portal.connect(("127.0.0.1", relay_to))
            back = threading.Thread(target=_copy, args=(portal, client), daemon=True)
            back.start()
            while data := client.recv(65536):
                record.write(data)
                portal.sendall(data)


def _copy(source: socket, target: socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
