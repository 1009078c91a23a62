"""Two ranks print fast; in the middle of it a part of the portal dies, or the network breaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import loud_jobs, loud_lines
from tests.faults.loud_jobs import RANKS, Listener
from tests.faults.loud_place import LoudPlace
from tests.faults.witness import TO_BEGIN, TO_GO_ON
from tests.waiting import eventually

# Who breaks where: what is away matters to a carrier, or the cell would show nothing.
CELLS = [
    pytest.param("push", "web", marks=pytest.mark.smoke),
    ("push", "redis"),
    ("push", "postgres"),
    ("push", "network"),
    ("pull", "redis"),
    ("pull", "follower"),
    ("pull", "postgres"),
    ("pull", "network"),
]
# What a reader has seen when it breaks, of some two hundred thousand lines.
SEEN = 20_000
# How long it is broken at most: a follower whose way is cut first stores what it has in its hands.
BROKEN_S = 60
END_S = 100
# Each is over in some fifteen seconds, unless the machine is busy with other things.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoudPlace]:
    """Start one of each, on one database."""
    place = LoudPlace(tmp_path_factory.mktemp("loud"))
    try:
        place.start()
        yield place
    finally:
        place.close()


@pytest.mark.feature("P3.1")
@pytest.mark.parametrize(("carrier", "broken"), CELLS)
def test_what_was_printed_is_what_is_kept_and_what_was_followed_byte_for_byte_whatever_breaks(
    place, carrier, broken
):
    place.witness.allow(TO_BEGIN)
    job_id = place.submit(carrier)
    listener = Listener(place.fleet, job_id)
    try:
        assert eventually(lambda: _is_in_the_middle(listener), timeout_s=60), place.fleet.logs()
        assert place.is_held(job_id), "there is nothing left to print"
        with place.broken(broken):
            # The rest is printed into a portal that is not there.
            place.witness.allow(TO_GO_ON)
            assert eventually(lambda: place.has_ended(job_id), timeout_s=BROKEN_S)
            if broken == "network":
                cut = eventually(
                    lambda: place.has_been_cut(carrier) and listener.broken, timeout_s=BROKEN_S
                )
                assert cut, (place.cuts.made, listener.broken)
            if broken == "redis":
                # No message reports new lines: readers poll.
                assert eventually(lambda: len(listener.rows) > 2 * SEEN, timeout_s=BROKEN_S)
        job = place.fleet.wait_for_end(job_id, END_S)
        listener.wait(END_S)
    finally:
        listener.close()
    assert (job["status"], job["exit_code"], job["attempt"]) == ("SUCCEEDED", 0, 1)
    for rank in RANKS:
        expected = loud_jobs.written(rank)
        kept = loud_jobs.downloaded(place.fleet, job_id, rank)
        loud_jobs.assert_same(kept, expected, f"rank {rank} in the log")
        loud_jobs.assert_same(listener.text(rank), expected, f"rank {rank} as it was followed")
    # Numbers without holes and repetitions: no line of any stream came twice.
    assert [row["line"] for row in listener.rows] == list(range(1, len(listener.rows) + 1))
    assert not [remark for remark in listener.remarks() if "missing" in remark]
    assert listener.broken or broken not in {"web", "network"}


@pytest.mark.feature("P3.1")
def test_what_died_with_its_machines_is_reported_as_missing_and_before_that_nothing_is_missing(
    place,
):
    place.witness.allow(TO_BEGIN)
    job_id = place.submit("pull", retry={"max_recoveries": 0})
    listener = Listener(place.fleet, job_id)
    try:
        assert eventually(lambda: _is_in_the_middle(listener), timeout_s=60), place.fleet.logs()
        place.lose_machines(job_id)
        job = place.fleet.wait_for_end(job_id, END_S)
        listener.wait(END_S)
    finally:
        listener.close()
    assert (job["status"], job["stop_reason"], job["attempt"]) == ("FAILED", "WORKER_LOST", 1)
    for rank in RANKS:
        kept = loud_jobs.downloaded(place.fleet, job_id, rank)
        assert 0 < kept.count(b"\n") < loud_lines.LINES
        begin = loud_jobs.written(rank)[: len(kept) - 1] + b"\n"
        loud_jobs.assert_same(kept, begin, f"rank {rank} in the log")
        # Machines may go in the middle of a long line: a saved file ends it, a stream does not.
        followed = listener.text(rank).removesuffix(b"\n") + b"\n"
        loud_jobs.assert_same(followed, kept, f"rank {rank} as it was followed")
        message = f"[portal] The end of rank {rank} in attempt 1 was not heard: messages after its"
        assert [each for each in listener.remarks() if each.startswith(message)], listener.remarks()


def _is_in_the_middle(listener: Listener) -> bool:
    begun = all(any(row["rank"] == rank for row in listener.rows) for rank in RANKS)
    return begun and len(listener.rows) > SEEN
