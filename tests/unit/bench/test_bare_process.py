"""Bare processes as peers: they must really start and end."""

from __future__ import annotations

import threading

from bench import bare_process


def test_bare_processes_take_time_and_end():
    assert bare_process.seconds_to_end() > 0
    assert bare_process.seconds_to_first_line() > 0


def test_empty_processes_are_started_until_the_block_ends():
    before = threading.active_count()
    with bare_process.started_steadily(0.001) as found:
        while len(found) < 3:
            assert threading.active_count() > before
    ended = len(found)
    assert threading.active_count() == before
    assert ended == len(found) and min(found) > 0
