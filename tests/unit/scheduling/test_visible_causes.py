"""Causes report that there are jobs that their reader may not see, but not their numbers."""

from __future__ import annotations

import pytest

from jobs.scheduling.causes import Behind, Cause, NoPrice, OverQuota, Preempted, StoppedForIt

SMALL = Behind(1), Preempted(1, Behind(2)), NoPrice(of=1), StoppedForIt((1, 2, 3), 3)


def known(*numbers: int) -> set[int]:
    return set(numbers)


@pytest.mark.parametrize("cause", SMALL)
def test_who_knows_all_reads_all(cause: Cause):
    assert cause.visible_to(known(1, 2, 3).__contains__) == cause


@pytest.mark.parametrize("cause", SMALL)
def test_who_knows_none_reads_no_number_and_the_same_code(cause: Cause):
    reported = cause.visible_to(known().__contains__)
    assert reported.named == ()
    assert not any(letter in reported.sentence.replace("3 nodes", "") for letter in "12")
    assert (reported.code, reported.reason) == (cause.code, cause.reason)
    assert reported.visible_to(known(1, 2, 3).__contains__) == reported


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((1, 2), "jobs 1, 2 and a job of another project"),
        ((2,), "job 2 and 2 jobs of other projects"),
        ((), "3 jobs of other projects"),
    ],
)
def test_those_who_are_stopped_are_counted_where_they_are_not_known(numbers, said):
    reported = StoppedForIt((1, 2, 3), 5).visible_to(known(*numbers).__contains__)
    assert reported.sentence == f"Waits for 5 nodes of {said}, which are being stopped for it."


def test_one_that_is_stopped_alone_and_not_known_is_one_job():
    reported = StoppedForIt((1,), 1).visible_to(known().__contains__)
    said = "Waits for 1 node of a job of another project, which is being stopped for it."
    assert reported.sentence == said


def test_the_present_cause_is_shown_by_the_same_rule():
    reported = Preempted(1, Behind(2)).visible_to(known(2).__contains__)
    assert reported.to_dict() == {
        "code": "preempted",
        "reason": "PREEMPTED",
        "by": None,
        "then": "Waits behind job 2, for which the next machines are reserved.",
    }


def test_a_cause_that_names_no_job_is_shown_to_every_user():
    cause = OverQuota("queue", "q", "jobs", 1, 1, 1)
    assert cause.visible_to(known().__contains__) is cause
