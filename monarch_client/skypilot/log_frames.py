"""Frames found again in SkyPilot's log of a job, where a runner printed them.

Lines of other nodes cut in anywhere, prefixes with colors precede lines, and a reading may
begin anywhere. A line of `monarch_client.runner.delivery.log_lines` is found whole, or not at all.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from monarch_client.runner.delivery.log_lines import (
    END,
    LINE_BYTES,
    MARK,
    MOST_UNPACKED_BYTES,
    check_of,
    digest_of,
)
from monarch_client.runner.vocabulary.frames import number_of

FIRST_TAIL = 256
# From there on the whole log is read.
LAST_TAIL = 2**20
# A line with what others may have written into it.
_WINDOW_BYTES = 4 * LINE_BYTES
# Packets of which some lines are still to come, or never will.
_MOST_UNFINISHED = 16
_LINE = re.compile(
    rb"~mp1 ((\d{1,19}) (\d{1,19}) \d{1,10}\.\d{1,19} ([0-9a-f]{16}) (\d{1,6})([+.])) "
    rb"([0-9a-f]{8}) ([A-Za-z0-9+/=]*)~"
)
_PREFIX = rb"\x1b\[[0-9;]*m\([^()\r\n]{1,300}\)\x1b\[0m ?"
_FOREIGN_LINE = re.compile(_PREFIX + rb"[^\n]*(?:\n|$)")
_FOREIGN_PREFIX = re.compile(_PREFIX)
_LINE_ENDS = re.compile(rb"[\r\n]+")


@dataclass(frozen=True, slots=True)
class Packet:
    """Frames that were printed together, as NDJSON lines. Numbers count from 1 in a log."""

    number: int
    frames: tuple[bytes, ...]


@dataclass(slots=True)
class _Unfinished:
    """A packet of which not all lines have been seen."""

    number: int
    parts: dict[int, bytes] = field(default_factory=dict)
    last: int | None = None

    @property
    def payload(self) -> bytes | None:
        if self.last is None or len(self.parts) <= self.last:
            return None
        return b"".join(self.parts[part] for part in range(self.last + 1))


class PacketFinder:
    """A finder of packets in a log that is fed piece by piece. `damaged`: lines, packets lost."""

    def __init__(self, attempt_id: int) -> None:
        self.damaged = 0
        self._attempt_id = attempt_id
        self._rest = b""
        self._unfinished: dict[bytes, _Unfinished] = {}

    def feed(self, data: bytes) -> list[Packet]:
        """Return the packets that `data` completes."""
        return self._scan(self._rest + data, is_end=False)

    def close(self) -> list[Packet]:
        """End the log; return the packets that can still be made of the rest."""
        packets = self._scan(self._rest, is_end=True)
        self.damaged += len(self._unfinished)
        self._unfinished.clear()
        return packets

    def _scan(self, data: bytes, *, is_end: bool) -> list[Packet]:
        packets: list[Packet] = []
        at = data.find(MARK)
        while at >= 0:
            following = data.find(MARK, at + len(MARK))
            end = len(data) if following < 0 else following
            match = _LINE.match(data, at)
            is_open = following < 0 and len(data) - at < _WINDOW_BYTES and not is_end
            if match is not None and _is_intact(match):
                packets += self._take(match)
            elif (repaired := _repaired(data[at:end])) is not None:
                packets += self._take(repaired)
            elif is_open:
                self._rest = data[at:]
                return packets
            else:
                self.damaged += 1
            at = following
        # The beginning of a mark may be what came last.
        self._rest = b"" if is_end else data[len(data) - _begun_mark(data) :]
        return packets

    def _take(self, match: re.Match[bytes]) -> list[Packet]:
        attempt_id, number, digest, part, more = match.group(2, 3, 4, 5, 6)
        if int(attempt_id) != self._attempt_id:
            return []
        packet = self._unfinished.setdefault(digest, _Unfinished(int(number)))
        packet.parts[int(part)] = match.group(8)
        if more == b".":
            packet.last = int(part)
        payload = packet.payload
        if payload is not None:
            del self._unfinished[digest]
            frames = _unpacked(payload, digest)
            self.damaged += not frames
            return [Packet(packet.number, frames)] if frames else []
        if len(self._unfinished) > _MOST_UNFINISHED:
            del self._unfinished[next(iter(self._unfinished))]
            self.damaged += 1
        return []


def frames_beyond(
    read: Callable[[int], Iterable[bytes]],
    after: Mapping[int, int],
    attempt_id: int,
    first_tail: int = FIRST_TAIL,
) -> Iterator[bytes]:
    """Yield the attempt's frames numbered beyond `after`, in order; b"" during a pause.

    `read(tail)` gives the last `tail` lines of the log (0: all of it) and, if it likes, what is
    written from then on, piece by piece; an empty piece says that nothing came for a moment. It is
    called for ever more lines until they reach back to something known. Frames that the log has
    lost are left out: their numbers are missing.
    """
    given = dict(after)
    for tail in _tails(first_tail if given else 0):
        pieces = read(tail)
        try:
            if (yield from _frames_in(pieces, tail, given, attempt_id)):
                return
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()


def _tails(first: int) -> Iterator[int]:
    tail = first
    while 0 < tail <= LAST_TAIL:
        yield tail
        tail *= 2
    yield 0


def _frames_in(
    pieces: Iterable[bytes], tail: int, given: dict[int, int], attempt_id: int
) -> Generator[bytes, None, bool]:
    """Yield what is new in one reading; returns False if it does not reach back far enough."""
    finder, reach = PacketFinder(attempt_id), _Reach(tail)
    for piece in pieces:
        for packet in finder.feed(piece):
            if not reach.covers(packet, given):
                return False
            yield from _new_in(packet, given)
        reach.count(piece)
        if not piece:
            if reach.is_lost:
                return False
            yield b""
    for packet in finder.close():
        if not reach.covers(packet, given):
            return False
        yield from _new_in(packet, given)
    return not reach.is_lost


class _Reach:
    """The check whether a reading reaches back to the last known frame, or the log's start."""

    def __init__(self, tail: int) -> None:
        self._tail = tail
        self._lines = 0
        self._is_sure = tail == 0

    def count(self, piece: bytes) -> None:
        self._lines += piece.count(b"\n")

    @property
    def is_lost(self) -> bool:
        """Whether as many lines as requested were read, and none of them was ours."""
        return not self._is_sure and self._lines >= self._tail

    def covers(self, packet: Packet, given: Mapping[int, int]) -> bool:
        if not self._is_sure:
            rank, seq = number_of(packet.frames[0])
            # What was printed before something known has been read before.
            self._is_sure = packet.number == 1 or 0 < seq <= given.get(rank, 0)
            if not seq:
                return True  # samples: they do not show what was read before
        return self._is_sure


def _new_in(packet: Packet, given: dict[int, int]) -> Iterator[bytes]:
    for frame in packet.frames:
        rank, seq = number_of(frame)
        if seq > given.get(rank, 0):
            given[rank] = seq
        elif seq:
            continue
        yield frame


def _is_intact(match: re.Match[bytes]) -> bool:
    return check_of(match.group(1), match.group(8)) == match.group(7)


def _repaired(text: bytes) -> re.Match[bytes] | None:
    """Match a line without the foreign lines, or only foreign prefixes, that cut into it."""
    if END not in text[1:]:
        return None
    for foreign in (_FOREIGN_LINE, _FOREIGN_PREFIX):
        match = _LINE.match(_LINE_ENDS.sub(b"", foreign.sub(b"", text)))
        if match is not None and _is_intact(match):
            return match
    return None


def _begun_mark(data: bytes) -> int:
    """Return how many of the last bytes may be the beginning of a mark."""
    return next((n for n in range(len(MARK) - 1, 0, -1) if data.endswith(MARK[:n])), 0)


def _unpacked(payload: bytes, digest: bytes) -> tuple[bytes, ...]:
    """Unpack the frames of a whole packet; none if it does not match its digest."""
    try:
        unzip = zlib.decompressobj()
        content = unzip.decompress(base64.b64decode(payload, validate=True), MOST_UNPACKED_BYTES)
    except (ValueError, zlib.error):
        return ()
    if not unzip.eof or digest_of(content).encode() != digest:
        return ()
    return tuple(content.splitlines(keepends=True))
