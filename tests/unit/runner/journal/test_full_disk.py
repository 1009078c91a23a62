"""A full disk: writers do not wait, essential frames are held, and losses are reported."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pytest

from monarch_client.runner.base import small_files
from monarch_client.runner.base.lines import Piece
from monarch_client.runner.journal import journal as journal_module
from monarch_client.runner.journal.journal import Journal
from monarch_client.runner.journal.recorder import Recorder
from tests.waiting import eventually


class Disk:
    """A disk with space for `room` more bytes; half a write may still fit, as on a real one."""

    def __init__(self) -> None:
        self.room: int | None = None

    def write(self, fd: int, data: bytes) -> int:
        if self.room is None:
            return os_write(fd, data)
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        part = bytes(data)[: self.room]
        self.room -= len(part)
        return os_write(fd, part)


os_write = os.write


@pytest.fixture
def disk(monkeypatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(journal_module.os, "write", disk.write)
    monkeypatch.setattr(journal_module, "_FULL_DISK_RETRY_S", 0.01)
    return disk


@pytest.fixture
def journal(tmp_path: Path, disk: Disk) -> Journal:
    return Journal(tmp_path)


def read(journal: Journal) -> list[dict]:
    return [json.loads(line) for line in journal.peek(10**9)]


def test_no_writer_waits_for_room_and_everything_is_written_when_there_is_some(journal, disk):
    recorder = Recorder(journal, 0)
    recorder.remark("before")
    disk.room = 7
    begin = time.monotonic()
    recorder.write_lines("stdout", [Piece("held")])
    recorder.write("end", reason="COMPLETED")
    assert time.monotonic() - begin < 5
    assert [frame["seq"] for frame in read(journal)] == [1]
    assert not journal.is_read
    disk.room = None
    assert eventually(lambda: len(read(journal)) == 3)
    assert [frame["seq"] for frame in read(journal)] == [1, 2, 3]
    assert read(journal)[1]["text"] == "held"


def test_who_has_finished_is_not_done_while_something_is_held(journal, disk):
    disk.room = 0
    Recorder(journal, 0).write("end", reason="COMPLETED")
    journal.finish()
    assert not journal.wait(0.05)
    assert not journal.is_read
    disk.room = None
    assert journal.wait(10)
    journal.acknowledge(journal.peek(10**6))
    assert journal.is_read


def test_lines_beyond_the_memory_set_aside_are_counted_and_reported(journal, disk, monkeypatch):
    monkeypatch.setattr(journal_module, "HELD_BYTES", 1000)
    recorder = Recorder(journal, 0)
    disk.room = 0
    for number in range(100):
        recorder.write_lines("stdout", [Piece(f"line {number}")])
    recorder.write("exit", exit_code=3)
    disk.room = None
    assert eventually(lambda: read(journal) and read(journal)[-1]["kind"] == "exit")
    frames = read(journal)
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    *kept, reported, ended = frames
    assert [frame["text"] for frame in kept] == [f"line {n}" for n in range(len(kept))]
    assert reported["stream"] == "portal"
    assert reported["text"].startswith(f"{100 - len(kept)} lines are missing here")
    assert ended["exit_code"] == 3


def test_frames_of_another_rank_stay_with_it_until_they_are_on_this_disk(journal, disk):
    disk.room = 0
    frame = b'{"rank":1,"seq":1,"kind":"line"}\n'
    assert not journal.offer(1, 1, [frame])
    assert journal.highest.get(1, 0) == 0
    disk.room = None
    assert journal.offer(1, 1, [frame])
    assert journal.highest[1] == 1


def test_a_new_runner_gives_again_the_numbers_of_what_was_only_held(tmp_path, journal, disk):
    recorder = Recorder(journal, 0)
    recorder.remark("on the disk")
    disk.room = 0
    recorder.remark("in memory")
    assert journal.last_number(0) == 2
    after_a_crash = Journal(tmp_path)
    assert after_a_crash.highest == {0: 1}
    disk.room = None


def test_a_note_that_does_not_fit_leaves_the_one_before(tmp_path, monkeypatch):
    note = tmp_path / "goal"
    assert small_files.write_note(note, "setup")

    def full(path: Path, _text: str) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    assert not small_files.write_note(note, "run")
    assert note.read_text() == "setup"
    assert [path.name for path in tmp_path.iterdir()] == ["goal"]
