"""The sockets of a context: no other user of the machine finds or opens them."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from monarch_client.context import JobContext

NOBODY = 65534
# Of the flags in /proc/net/unix.
LISTENS = 0x10000


def test_the_sockets_of_a_context_are_in_a_folder_that_only_its_user_enters(
    context: JobContext,
) -> None:
    context.get(context.create_task(lambda: context.put(bytes(100_000))))  # uses both
    sockets = listening_sockets()
    folder = Path(sockets[0]).parent
    assert sockets == [str(folder / "objects"), str(folder / "tasks")]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.stat().st_uid == os.getuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_process_of_another_user_connects_to_no_socket_of_a_context(context: JobContext) -> None:
    sockets = listening_sockets()
    assert [outcome_as(NOBODY, each) for each in sockets] == ["PermissionError"] * 2
    # Neither where the folder lets it in: the listeners look at the user themselves.
    folder = Path(sockets[0]).parent
    folder.chmod(0o777)
    for each in sockets:
        Path(each).chmod(0o777)
    try:
        assert [outcome_as(NOBODY, each) for each in sockets] == ["closed"] * 2
    finally:
        folder.chmod(0o700)
    assert context.get(context.create_task(abs, (-1,))) == 1


def listening_sockets() -> list[str]:
    """List the Unix sockets on which this process listens; abstract ones begin with "@"."""
    links = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_socket()]
    inodes = {each.removeprefix("socket:[").removesuffix("]") for each in links}
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return sorted(
        row[7] for row in rows if len(row) > 7 and row[6] in inodes and int(row[3], 16) & LISTENS
    )


def outcome_as(uid: int, address: str) -> str:
    """Return what a process of this user gets that connects and waits for an answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(address.replace("@", "\0", 1))
                text = connection.recv(1) or b"closed"
        except OSError as error:
            text = type(error).__name__.encode()
        os.write(writing, text)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text.decode()
