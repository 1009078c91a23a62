"""Samples on their way: only the latest of each rank, and never in the way of lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.runner.delivery import push
from monarch_client.runner.journal.samples import MOST_BYTES, Samples
from monarch_client.runner.vocabulary.frames import sample_line
from tests.fake_ingest import FakeIngest
from tests.unit.runner.delivery.test_push import Pushing, haste, ingest, sequence

__all__ = ["haste", "ingest"]


def test_a_newer_sample_takes_the_place_of_one_that_has_not_gone_yet() -> None:
    samples = Samples()
    samples.put(0, b"old\n")
    samples.put(1, b"other\n")
    samples.put(0, b"new\n")
    assert samples.take() == [b"new\n", b"other\n"]
    assert samples.take() == []


def test_of_many_hosts_a_part_goes_at_a_time_and_all_get_their_turn() -> None:
    samples, size = Samples(), MOST_BYTES // 10
    for rank in range(25):
        samples.put(rank, b"%d " % rank + b"x" * (size - 4))
    seen = []
    while taken := samples.take():
        assert sum(map(len, taken)) <= MOST_BYTES
        seen += [int(line.split()[0]) for line in taken]
        # The hosts that were sent have new samples before the others were sent.
        samples.put(seen[0], b"0 again") if len(seen) < 25 else None
    assert set(seen) == set(range(25))


def test_samples_travel_with_lines_and_heartbeats(tmp_path: Path, ingest: FakeIngest, monkeypatch):
    monkeypatch.setattr(push, "HEARTBEAT_S", 0.05)
    pushing = Pushing(tmp_path, ingest)
    pushing.samples.put(0, sample_line(0, {"cpu": 1.0}))
    ingest.wait_for(lambda: len(ingest.samples) == 1)
    pushing.lines(3)
    pushing.samples.put(0, sample_line(0, {"cpu": 2.0}))
    ingest.wait_for(lambda: len(ingest.samples) == 2)
    pushing.finish()
    assert [each["cpu"] for each in ingest.samples] == [1.0, 2.0]
    assert sequence(ingest) == [1, 2, 3]


def test_while_the_portal_is_away_samples_take_no_room_anywhere(
    tmp_path: Path, ingest: FakeIngest
) -> None:
    pushing = Pushing(tmp_path, ingest)
    ingest.wait_for(lambda: ingest.requests)
    ingest.stop()
    for number in range(5000):
        pushing.samples.put(0, sample_line(0, {"cpu": number}))
    assert pushing.journal.is_read
    assert len(pushing.samples.take()) <= 1
    pushing.samples.put(0, sample_line(0, {"cpu": 1.0}))
    ingest.start()
    pushing.lines(1)
    pushing.finish()
    assert sequence(ingest) == [1]


def test_a_portal_that_knows_no_samples_gets_its_lines_and_no_more_of_them(
    tmp_path: Path, ingest: FakeIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "HEARTBEAT_S", 0.05)
    refused: list[str] = []

    def refuse(frame: dict[str, object]) -> bool:
        if frame["kind"] == "metrics":
            refused.append(frame["kind"])
        return frame["kind"] == "metrics"

    ingest.refuse = refuse
    pushing = Pushing(tmp_path, ingest)
    pushing.samples.put(0, sample_line(0, {"cpu": 1.0}))
    ingest.wait_for(lambda: refused)
    pushing.lines(3)
    pushing.samples.put(0, sample_line(0, {"cpu": 2.0}))
    pushing.finish()
    assert ingest.texts() == ["x" * 10] * 3
    assert ingest.texts("portal") == []
    assert len(refused) == 1
