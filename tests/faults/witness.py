"""A record of lives: each command of a job opens a connection here and holds it for its life.

The kernel closes the connection at any death, so no report of the portal's is needed. What a
command does next may wait for a message from here.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from dataclasses import dataclass, field

from tests.waiting import eventually

# What a command says first, and how it waits for the witness's next word.
BEGIN = (
    "exec 3<>/dev/tcp/127.0.0.1/{port}\n"
    'echo "begin $MPORTAL_JOB_ID $MPORTAL_ATTEMPT $SKYPILOT_NODE_RANK $$" >&3\n'
)
AWAIT = "read -r word <&3\n"
GO, PEER_ENDED = b"go\n", b"peer-ended\n"
# Each command waits twice: before its first line, and in the middle of them.
TO_BEGIN, TO_GO_ON = 1, 2
_LOOK_S = 0.1


@dataclass(slots=True)
class Incarnation:
    """One life of one command of a job."""

    job: int
    attempt: int
    rank: int
    pid: int
    connection: socket.socket = field(repr=False)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    words: int = 0

    @property
    def lives(self) -> bool:
        """Whether its connection is open."""
        return self.ended is None


class Witness:
    """A listener on a port of its own until it is closed. `doubles` must stay empty."""

    def __init__(self) -> None:
        self.seen: list[Incarnation] = []
        self.doubles: list[str] = []
        self._allowed = TO_GO_ON
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._welcome)
        self._lock = threading.RLock()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="witness", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Close all connections."""
        self._closing = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def of(self, job: int, attempt: int | None = None) -> list[Incarnation]:
        """List every incarnation of a job, or of one attempt, in order of their beginnings."""
        with self._lock:
            return [
                each for each in self.seen if each.job == job and attempt in (None, each.attempt)
            ]

    def living(self, job: int) -> list[Incarnation]:
        """List the living incarnations of a job."""
        return [each for each in self.of(job) if each.lives]

    def wait_for(self, job: int, ranks: int, *, timeout_s: float = 40) -> list[Incarnation]:
        """Wait for as many living incarnations as `ranks` and return them by rank."""
        assert eventually(lambda: len(self.living(job)) == ranks, timeout_s=timeout_s), self.seen
        return sorted(self.living(job), key=lambda each: each.rank)

    def allow(self, words: int) -> None:
        """Allow all incarnations, later ones too, to go so far: 0, TO_BEGIN or TO_GO_ON."""
        with self._lock:
            self._allowed = words
            for each in self.seen:
                self._let_go_on(each)

    def _serve(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select(_LOOK_S):
                with self._lock:
                    key.data(key.fileobj)

    def _welcome(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self._selector.register(connection, selectors.EVENT_READ, self._hear)

    def _hear(self, connection: socket.socket) -> None:
        text = received(connection)
        known = next((each for each in self.seen if each.connection is connection), None)
        if text:
            self._note_begin(connection, text)
        else:
            self._selector.unregister(connection)
            connection.close()
            if known is not None:
                self._note_end(known)

    def _note_begin(self, connection: socket.socket, text: str) -> None:
        # One short line, written at once: it does not come in parts.
        job, attempt, rank, pid = map(int, text.removeprefix("begin").split())
        new = Incarnation(job, attempt, rank, pid, connection)
        for old in self.seen:
            self._compare(old, new)
        self.seen.append(new)
        self._let_go_on(new)

    def _compare(self, old: Incarnation, new: Incarnation) -> None:
        if (old.job, old.rank) != (new.job, new.rank):
            return
        if old.attempt == new.attempt:
            self.doubles.append(f"started twice: {old} and {new}")
        # Its end may have arrived unread: it counts from when it happened.
        if old.lives and not has_hung_up(old.connection):
            self.doubles.append(f"both live: {old} and {new}")

    def _note_end(self, ended: Incarnation) -> None:
        ended.ended = time.monotonic()
        for peer in self._peers(ended):
            if peer.words == TO_GO_ON:
                self._tell(peer, PEER_ENDED)

    def _peers(self, one: Incarnation) -> list[Incarnation]:
        return [each for each in self.of(one.job, one.attempt) if each is not one]

    def _let_go_on(self, one: Incarnation) -> None:
        while one.words < self._allowed:
            one.words += 1
            self._tell(one, GO)
            if one.words == TO_GO_ON and any(not peer.lives for peer in self._peers(one)):
                self._tell(one, PEER_ENDED)

    def _tell(self, incarnation: Incarnation, word: bytes) -> None:
        if incarnation.lives:
            try:
                incarnation.connection.sendall(word)
            except OSError:
                return


def received(connection: socket.socket) -> str:
    """Return what has arrived; "" when the other side has closed."""
    try:
        return connection.recv(4096).decode()
    except OSError:
        return ""


def has_hung_up(connection: socket.socket) -> bool:
    """Whether the other side has closed; what it sent before remains to be read."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
