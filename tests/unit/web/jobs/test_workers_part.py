"""The workers that are shown of many, and the counts of all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobs.web.jobs.workers_part import MOST_ROWS, workers_part
from monarch_client.wire.attempts import Worker


def worker(rank: int, status: str = "EXITED", exit_code: int | None = 0) -> Worker:
    unsaid: dict[str, Any] = {"python": "", "pid": None, "detail": "", "ssh": "", "address": ""}
    times: dict[str, Any] = {"ready_at": None, "ended_at": None}
    return Worker(rank=rank, mesh="", status=status, exit_code=exit_code, **unsaid, **times)


def test_all_of_a_few_are_shown_without_a_word():
    few = [worker(rank) for rank in range(MOST_ROWS)]
    part = workers_part(few, MOST_ROWS, "trouble")
    assert (part.rows, part.summary, part.choices, part.left_out) == (few, "", (), 0)


def test_silent_workers_and_rare_exit_codes_are_counted_as_well():
    codes = [*range(1, 9), *[9] * 3]
    many = [worker(rank, exit_code=code) for rank, code in enumerate(codes)]
    many += [worker(rank, "RUNNING", None) for rank in range(len(many), 150)]
    part = workers_part(many, 200, "")
    assert part.summary == (
        "200 nodes: 139 running, 11 exited, 50 not heard of. "
        "Exit code 9 on 3, 1 on 1, 2 on 1, 3 on 1, 4 on 1, others on 4."
    )
    assert part.rows == many[:11]


def test_of_more_in_trouble_than_fit_it_is_said_how_many_are_left_out():
    lost = [worker(rank, "LOST", None) for rank in range(250)]
    part = workers_part(lost, 250, "")
    assert (part.rows, part.left_out) == (lost[:MOST_ROWS], 150)
    assert [choice.words for choice in part.choices] == [
        "Unhealthy: 250",
        "0–99",
        "100–199",
        "200–249",
    ]


def test_an_unknown_group_is_like_no_group():
    many = [worker(rank) for rank in range(101)]
    assert workers_part(many, 101, "7; DROP").rows == many[:100]
    assert workers_part(many, 101, "100").rows == many[100:]


def test_of_many_the_silent_ones_are_among_those_in_trouble():
    many = [worker(rank, "RUNNING", None) for rank in range(150)]
    many[140] = replace(many[140], is_silent=True)
    assert [each.rank for each in workers_part(many, 150, "").rows] == [140]
