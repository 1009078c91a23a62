"""Split a stream of bytes into lines, live and in bounded memory."""

from __future__ import annotations

import codecs
import os
import select
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.vocabulary.limits import MAX_PIECE_BYTES

if TYPE_CHECKING:
    from typing import Callable

# UTF-8: bytes 10xxxxxx continue a character.
_CONTINUATION = 0x80
# How long a line without an end is kept back.
FLUSH_S = 1.0
_READ_BYTES = 64 * 1024


class Piece(NamedTuple):
    """A line, or a part of a long one; `more` says that the line goes on."""

    text: str
    more: bool = False


class LineSplitter:
    """A splitter of bytes into lines, and of lines into pieces of at most `limit` bytes."""

    def __init__(self, limit: int = MAX_PIECE_BYTES) -> None:
        self._limit = limit
        self._rest = b""
        # The last piece given out said that its line goes on.
        self._is_open = False

    def feed(self, data: bytes) -> list[Piece]:
        """Return the pieces that `data` completes."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        pieces: list[Piece] = []
        for line in lines:
            tail = self._cut(line, pieces)
            pieces.append(Piece(_decode(tail[:-1] if tail.endswith(b"\r") else tail)))
        self._rest = self._cut(self._rest, pieces)
        if pieces:
            self._is_open = pieces[-1].more
        return pieces

    @property
    def has_rest(self) -> bool:
        """Whether there is an unfinished line that was not returned yet."""
        return bool(self._rest)

    def flush(self) -> list[Piece]:
        """Return the beginning of an unfinished line, such as a progress bar or a prompt."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text = decoder.decode(self._rest)
        # A character that is still arriving stays.
        self._rest = decoder.getstate()[0]
        self._is_open = self._is_open or bool(text)
        return [Piece(text, more=True)] if text else []

    def close(self) -> list[Piece]:
        """Return the unfinished last line, if there is one."""
        rest, self._rest = self._rest, b""
        is_open, self._is_open = self._is_open, False
        return [Piece(_decode(rest))] if rest or is_open else []

    def _cut(self, line: bytes, pieces: list[Piece]) -> bytes:
        # Only what is longer than the limit is cut, so that a last piece is never empty.
        start = 0
        while len(line) - start > self._limit:
            end = _character_boundary(line, start + self._limit)
            pieces.append(Piece(_decode(line[start:end]), more=True))
            start = end
        return line[start:]


def _decode(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _character_boundary(line: bytes, end: int) -> int:
    """Return the last offset at or before `end` that is not inside a UTF-8 character."""
    for back in range(4):
        if line[end - back] & 0xC0 != _CONTINUATION:
            return end - back
    return end


class LineReader:
    """A reader of one pipe on its own thread, until every writer has closed the pipe."""

    def __init__(self, fd: int, on_pieces: Callable[[list[Piece]], None]) -> None:
        # How often something came, and whether it is still being passed on.
        self._heard = 0
        self._is_busy = False
        self._fd = fd
        self._on_pieces = on_pieces
        self._thread = threading.Thread(target=self._read, daemon=True, name="reader")
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether everything has been read by then."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def drain(self, idle_s: float, give_up_at: float) -> None:
        """Wait until everything is read, or nothing arrived for `idle_s`, or it is `give_up_at`."""
        heard = self._heard
        while not self.wait(idle_s) and time.monotonic() < give_up_at:
            if heard == self._heard and not self._is_busy:
                return
            heard = self._heard

    def _read(self) -> None:
        splitter = LineSplitter()
        flush_at = 0.0
        while True:
            if not splitter.has_rest:
                flush_at = time.monotonic() + FLUSH_S
            elif not self._is_ready_by(flush_at):
                flush_at = time.monotonic() + FLUSH_S
                self._give(splitter.flush())
                continue
            data = os.read(self._fd, _READ_BYTES)
            if not data:
                break
            self._is_busy = True
            self._heard += 1
            pieces = splitter.feed(data)
            if pieces:
                # What is left began with this: a program that never pauses has no late lines.
                flush_at = time.monotonic() + FLUSH_S
            self._give(pieces)
            self._is_busy = False
        self._give(splitter.close())
        os.close(self._fd)

    def _is_ready_by(self, moment: float) -> bool:
        """Whether there is something to read, or an end, by `moment`."""
        left = max(0.0, moment - time.monotonic())
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(left * 1000))

    def _give(self, pieces: list[Piece]) -> None:
        if pieces:
            self._on_pieces(pieces)
