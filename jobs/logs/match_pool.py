"""The few processes of a web process that look for matches, and who may use one now.

A search that goes wrong costs its process, never the portal: the next one gets a new process.
"""

from __future__ import annotations

import atexit
import json
import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from threading import Condition
from typing import Any

from django.conf import settings

from jobs.errors import InvalidPatternError, PortalBusyError, SearchTooSlowError
from jobs.logs.matching import Hit, Question

log = logging.getLogger(__name__)

# How long a search waits for a process, and how many may wait at once.
WAIT_S = 3.0
MOST_WAITING = 3
# The process ends itself long before this; only one that is stopped is waited for in vain.
_ANSWER_S = 60.0


class MatchProcess:
    """One process, and our end of the socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # Without an environment: whatever the pattern does to it, it knows no secret.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jobs.logs.match_process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=settings.BASE_DIR,
                env={},
            )
        self._connection = Connection(ours.detach())
        self._is_first = True

    def begin(self, question: Question) -> None:
        """Ask `question` of the pieces that follow. InvalidPatternError: RE2 does not take it."""
        answer = self._answer(json.dumps({"question": question.to_dict()}).encode())
        if "error" in answer:
            raise _invalid_pattern(answer["error"], answer["position"])

    def begin_stretch(self) -> None:
        """Begin a stretch: the next piece does not follow on one that was searched."""
        self._is_first = True

    def hits(
        self, payload: bytes, first: int, begin: int, limit: int
    ) -> tuple[list[Hit], bool, int]:
        """Return the first hits of a compressed piece from line `begin` on, whether later
        lines were left out, and how many bytes the piece has. It follows on the one before.
        """
        header = {"first": first, "begin": begin, "limit": limit, "is_first": self._is_first}
        self._is_first = False
        answer = self._answer(json.dumps(header).encode(), payload)
        found = [
            Hit(number, stored, [(start, end) for start, end in spans], parts)
            for number, stored, spans, parts in answer["hits"]
        ]
        return found, answer["is_cut"], answer["bytes"]

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, or sends an answer without a request."""
        return self._process.poll() is not None or self._connection.poll(0)

    def close(self) -> None:
        """End it, whatever it is doing."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _answer(self, *messages: bytes) -> dict[str, Any]:
        """Return the process's answer. SearchTooSlowError: too slow. PortalBusyError: it ended."""
        try:
            for message in messages:
                self._connection.send_bytes(message)
            if not self._connection.poll(_ANSWER_S):
                raise SearchTooSlowError
            answer: dict[str, Any] = json.loads(self._connection.recv_bytes())
        except (EOFError, ConnectionError):
            code = self._process.wait()
            if code == -signal.SIGPROF:
                raise SearchTooSlowError from None
            log.warning("a search's process ended", extra={"action": "search", "exit_code": code})
            raise PortalBusyError from None
        return answer


class MatchPool:
    """Lends processes. They start when they are first needed, and stay."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._idle: list[MatchProcess] = []
        self._lent = 0
        self._waiting = 0

    @contextmanager
    def lend(self, question: Question) -> Iterator[MatchProcess]:
        """Provide a process that has received `question`.

        InvalidPatternError: RE2 rejects the pattern. PortalBusyError: too many searches.
        """
        process: MatchProcess | None = self._take()
        try:
            if process is not None and process.has_ended:
                process.close()
                process = None
            if process is None:
                process = MatchProcess()
            process.begin(question)
            yield process
        except InvalidPatternError:
            raise
        except BaseException:
            # Half an answer may be on its way: the next caller would take it for theirs.
            if process is not None:
                process.close()
            process = None
            raise
        finally:
            self._give_back(process)

    def close(self) -> None:
        """End the idle processes."""
        with self._changed:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()

    def _take(self) -> MatchProcess | None:
        """Take an idle process, or the right to start one."""
        with self._changed:
            if self._waiting >= MOST_WAITING:
                raise PortalBusyError
            self._waiting += 1
            try:
                if not self._changed.wait_for(self._has_room, WAIT_S):
                    raise PortalBusyError
            finally:
                self._waiting -= 1
            self._lent += 1
            return self._idle.pop() if self._idle else None

    def _has_room(self) -> bool:
        return self._lent < max(1, settings.MPORTAL_SEARCHES)

    def _give_back(self, process: MatchProcess | None) -> None:
        with self._changed:
            self._lent -= 1
            if process is not None:
                self._idle.append(process)
            self._changed.notify()


def _invalid_pattern(problem: str, position: int | None) -> InvalidPatternError:
    place = "" if position is None else f" at character {position + 1}"
    row = {"path": "q", "code": "invalid_pattern", "message": problem, "position": position}
    return InvalidPatternError(
        f"This is not a regular expression that the portal takes: {problem}{place}.", errors=[row]
    )


POOL = MatchPool()
atexit.register(POOL.close)
