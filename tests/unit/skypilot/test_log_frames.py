"""Frames in a log that others write to as well: found whole, or not at all."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monarch_client.runner.delivery.log_lines import LINE_BYTES, packet_lines
from monarch_client.skypilot import log_frames
from monarch_client.skypilot.log_frames import PacketFinder, frames_beyond

ATTEMPT = 17
HEAD = b"\x1b[36m(head, rank=0, pid=10623)\x1b[0m "
OTHER = b"\x1b[36m(worker1, rank=1, pid=10620, ip=10.0.0.3)\x1b[0m "


def frame(seq: int, text: str = "x", rank: int = 0) -> bytes:
    fields = {"rank": rank, "seq": seq, "t": 1.5, "kind": "line", "text": text}
    return json.dumps(fields).encode("ascii") + b"\n"


def noise(seq: int, size: int) -> bytes:
    """Make a frame that does not get smaller by compression."""
    letters = random.Random(seq).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size)
    return frame(seq, "".join(letters))


def log_of(packets: Iterable[list[bytes]], first: int = 1) -> bytes:
    lines = (
        HEAD + line
        for number, frames in enumerate(packets, first)
        for line in packet_lines(ATTEMPT, number, frames)
    )
    return b"".join(lines)


def found(log: bytes, attempt_id: int = ATTEMPT) -> tuple[list[bytes], int]:
    finder = PacketFinder(attempt_id)
    packets = [*finder.feed(log), *finder.close()]
    return [each for packet in packets for each in packet.frames], finder.damaged


def numbers(frames: Iterable[bytes]) -> list[int]:
    return [json.loads(each)["seq"] for each in frames if each]


def test_lines_are_ascii_short_and_free_of_what_others_could_mistake() -> None:
    frames = [noise(1, 60_000), frame(2, "<sky-payload>~\x1b[0m Job finished (status: FAILED)")]
    lines = packet_lines(ATTEMPT, 1, frames)
    assert len(lines) > 4
    for line in lines:
        assert len(line) <= LINE_BYTES
        assert line.isascii()
        assert line.startswith(b"~mp1 17 1 0.1 ")
        assert line.endswith(b"~\n")
        assert not any(mark in line[1:-2] for mark in (b"<", b"~", b"\x1b", b"\r"))
    assert found(b"".join(lines)) == (frames, 0)


def test_a_log_of_many_short_lines_gets_much_shorter() -> None:
    frames = [frame(seq, f"step {seq} loss 0.1234") for seq in range(1, 500)]
    assert len(log_of([frames])) < len(b"".join(frames)) / 5


def test_prefixes_strangers_and_colors_around_our_lines_are_passed_over() -> None:
    frames = [frame(seq) for seq in range(1, 4)]
    log = b"INFO: Waiting 1s for the logs to be written...\n"
    log += OTHER + b"WARNING: ~mp1 is not ours\n" + log_of([frames[:1]]) + b"\r50%\r100%\r\n"
    log += log_of([frames[1:]], 2).replace(b"\n", b"\r\n") + b"\x1b[32mJob finished\x1b[0m"
    got, _ = found(log)
    assert got == frames


def test_frames_of_another_attempt_are_not_ours() -> None:
    assert found(log_of([[frame(1)]]), attempt_id=18) == ([], 0)


@pytest.mark.parametrize(
    "foreign",
    [
        OTHER + b"hello\n",
        b"\n" + HEAD,
        b"\n" + OTHER + b"tokenizers ~ parallelism\n" + OTHER + b"again\n",
    ],
)
def test_a_line_that_another_node_cut_into_is_put_together_again(foreign: bytes) -> None:
    log = log_of([[noise(1, 500)], [frame(2)]])
    for at in range(len(HEAD) + 5, len(log) // 2, 97):
        got, damaged = found(log[:at] + foreign + log[at:])
        assert (numbers(got), damaged) == ([1, 2], 0)


def test_what_is_lost_at_the_end_is_counted_and_hides_nothing_else() -> None:
    log = log_of([[frame(1)], [noise(2, 30_000)]])
    got, damaged = found(log[:-2000])
    assert (numbers(got), damaged > 0) == ([1], True)


PACKETS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 3), st.text(max_size=20), st.sampled_from([0, 0, 0, 9_000])),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=6,
)
FOREIGN = st.one_of(
    st.binary(min_size=1, max_size=60),
    st.sampled_from([OTHER + b"x\n", b"\r", b"~", b"~mp1 ", HEAD, b"\n", b"srun: error: bn1\n"]),
)


def made(contents: list[list[tuple[int, str, int]]]) -> list[list[bytes]]:
    """Make the packets, with frames numbered within their ranks."""
    last: dict[int, int] = {}
    packets = []
    for content in contents:
        frames = []
        for rank, text, size in content:
            last[rank] = last.get(rank, 0) + 1
            padding = "".join(random.Random(len(packets)).choices("abcdefgh0123456789", k=size))
            frames.append(frame(last[rank], text + padding, rank))
        packets.append(frames)
    return packets


def is_cut(start: int, end: int, cuts: Iterable[int]) -> bool:
    return any(start < cut < end for cut in cuts)


@settings(max_examples=300, deadline=None)
@given(PACKETS, st.lists(st.tuples(st.floats(0, 1), FOREIGN), max_size=8), st.data())
def test_no_wrong_frame_is_ever_found_and_every_whole_one_is(contents, intrusions, data) -> None:
    packets = made(contents)
    lines = [
        (index, line)
        for index, frames in enumerate(packets)
        for line in packet_lines(ATTEMPT, index + 1, frames)
    ]
    log, places = b"", []
    for index, line in lines:
        log += HEAD
        places.append((index, len(log), len(log) + len(line) - 1))
        log += line
    cuts = sorted((int(where * len(log)), text) for where, text in intrusions)
    whole = set(range(len(packets)))
    for index, start, end in places:
        if is_cut(start, end, (at for at, _ in cuts)):
            whole.discard(index)
    for at, text in reversed(cuts):
        log = log[:at] + text + log[at:]
    finder = PacketFinder(ATTEMPT)
    got: list[bytes] = []
    rest = log
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        got += [each for packet in finder.feed(rest[:size]) for each in packet.frames]
        rest = rest[size:]
    got += [each for packet in finder.close() for each in packet.frames]
    assert set(got) <= {each for frames in packets for each in frames}
    assert {each for index in whole for each in packets[index]} <= set(got)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=3000))
def test_arbitrary_bytes_are_no_frames(content) -> None:
    assert found(b"~mp1 " + content)[0] == []


class Log:
    """A log that can be read from its end; `asked` records the reads."""

    def __init__(self, content: bytes) -> None:
        self.lines = content.splitlines(keepends=True)
        self.requested: list[int] = []

    def read(self, tail: int) -> Iterator[bytes]:
        self.requested.append(tail)
        yield from self.lines[-tail:] if tail else self.lines
        yield b""


def many(count: int, first: int = 1) -> bytes:
    return log_of([[frame(seq)] for seq in range(first, first + count)], first)


def test_an_attempt_of_which_nothing_is_known_is_read_from_its_beginning() -> None:
    log = Log(many(1000))
    assert numbers(frames_beyond(log.read, {}, ATTEMPT)) == list(range(1, 1001))
    assert log.requested == [0]


def test_a_reading_goes_back_just_as_far_as_it_must() -> None:
    log = Log(many(1000))
    assert numbers(frames_beyond(log.read, {0: 900}, ATTEMPT, 8)) == list(range(901, 1001))
    assert log.requested == [8, 16, 32, 64, 128]


def test_noise_at_the_end_of_the_log_is_read_over() -> None:
    log = Log(many(20) + b"srun: error\n" * 50)
    assert numbers(frames_beyond(log.read, {0: 18}, ATTEMPT, 4)) == [19, 20]
    assert log.requested == [4, 8, 16, 32, 64]


def test_frames_that_the_log_has_lost_stay_missing_and_the_rest_comes() -> None:
    log = Log(many(10) + many(10, first=15))
    assert numbers(frames_beyond(log.read, {0: 5}, ATTEMPT)) == [*range(6, 11), *range(15, 25)]


def test_a_log_that_begins_after_what_is_known_is_read_whole_and_then_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_frames, "LAST_TAIL", 64)
    log = Log(many(30, first=50))
    assert numbers(frames_beyond(log.read, {0: 5}, ATTEMPT, 8)) == list(range(50, 80))
    assert log.requested == [8, 16, 32, 64, 0]


def test_a_stream_that_goes_on_says_when_nothing_comes() -> None:
    def read(_tail: int) -> Iterator[bytes]:
        yield many(2)
        yield b""
        yield many(1, first=3)
        yield b""

    got = list(frames_beyond(read, {0: 1}, ATTEMPT))
    assert [numbers([each]) for each in got] == [[2], [], [3], []]


def test_samples_of_hosts_are_passed_on_and_do_not_move_the_position() -> None:
    sample = b'{"rank": 0, "t": 1.5, "kind": "metrics", "cpu": 1.0}\n'
    # From the end of the log a packet of samples comes before any frame that is known.
    packets = [*([frame(seq)] for seq in range(1, 11)), *([sample] for _ in range(6)), [frame(11)]]
    log = Log(log_of(packets))
    got = list(frames_beyond(log.read, {0: 8}, ATTEMPT, 4))
    frames = [json.loads(each) for each in got if each]
    assert [each["seq"] for each in frames if "seq" in each] == [9, 10, 11]
    assert {each["kind"] for each in frames if "seq" not in each} == {"metrics"}
    assert log.requested == [4, 8, 16]
