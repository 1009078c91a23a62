"""A CONNECT proxy between two networks: listens in the rig's, dials in the machine's.

Nodes reach the package index through it and nothing else; the machine's own network settings stay
as they are.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress

HEAD_LIMIT = 16384
DIAL_S = 20


def fork_proxy() -> socket.socket:
    """Start the proxy as a child that stays in the present network namespace.

    Send it the listening socket over what this returns (`socket.send_fds`), made wherever it is to
    listen: a socket belongs to the network that it was made in.
    """
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        return ours
    ours.close()
    try:
        _serve(theirs)
    finally:
        os._exit(1)


def _serve(channel: socket.socket) -> None:
    _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
    listener = socket.socket(fileno=descriptors[0])
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_answer, args=(client,), daemon=True).start()


def _answer(client: socket.socket) -> None:
    try:
        server = socket.create_connection(_target(_head(client)), timeout=DIAL_S)
    except (OSError, ValueError) as error:
        with suppress(OSError):
            client.sendall(f"HTTP/1.1 502 {error}\r\n\r\n".encode())
        client.close()
        return
    server.settimeout(None)
    client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
    back = threading.Thread(target=_pump, args=(server, client), daemon=True)
    back.start()
    _pump(client, server)
    back.join()
    client.close()
    server.close()


def _head(client: socket.socket) -> bytes:
    head = b""
    # One byte at a time never takes what comes after the head.
    while not head.endswith(b"\r\n\r\n") and len(head) < HEAD_LIMIT:
        byte = client.recv(1)
        if not byte:
            raise ValueError("the request ended in its head")
        head += byte
    return head


def _target(head: bytes) -> tuple[str, int]:
    method, target, *_ = head.decode("ascii", "replace").split(" ")
    host, _, port = target.rpartition(":")
    if method != "CONNECT" or port != "443":
        raise ValueError("only CONNECT to port 443")
    return host.strip("[]"), int(port)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
