"""Stack dumps over REST: permissions to request them, and delivery to runners."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from jobs.ground import clock
from jobs.models import Attempt, JobEvent, LogHead, Worker
from jobs.policies.stack_groups import StackGroup, stack_groups
from jobs.readers import stacks as readers_stacks
from jobs.statuses import Carrier, WorkerStatus
from tests.factories import make_job
from tests.integration.api.conftest import assert_problem
from tests.integration.api.stack_calls import (
    TEXT,
    ask,
    heartbeat,
    path,
    running_attempt,
    stacks,
    tell,
)


@pytest.fixture
def attempt(project, member) -> Attempt:
    return running_attempt(project, member)


def test_a_stack_request_reaches_the_runner_and_its_answer_every_viewer(
    member, viewer, attempt
) -> None:
    requested = ask(member, attempt, rank=1)
    assert (requested["state"], requested["asked_by"]) == ("asked", member.user.get_username())
    assert heartbeat(attempt)["stacks"] == [{"id": requested["id"], "rank": 1, "pid": None}]
    tell(
        attempt,
        {"ask": requested["id"], "pid": 7, "command": "python wait.py", "text": TEXT},
        rank=1,
    )
    assert stacks(viewer, attempt)["dumps"][0]["state"] == "asked"
    tell(attempt, {"ask": requested["id"], "done": True, "left_out": 2}, rank=1)
    (dump,) = stacks(viewer, attempt)["dumps"]
    assert dump["processes"] == [{"pid": 7, "command": "python wait.py", "text": TEXT, "why": ""}]
    assert (dump["state"], dump["left_out"], dump["why"]) == ("done", 2, "")
    assert dump["asked_at"] <= dump["ended_at"]
    assert "stacks" not in heartbeat(attempt)


def test_one_process_can_be_requested_and_the_history_says_who_did(member, attempt) -> None:
    requested = ask(member, attempt, rank=2, pid=77)
    assert heartbeat(attempt)["stacks"] == [{"id": requested["id"], "rank": 2, "pid": 77}]
    event = JobEvent.objects.get(job=attempt.job, verb="stacks")
    assert event.message == "Stack dump of process 77 of node 2, attempt 1."
    assert event.actor == member.user


def test_a_viewer_sees_but_may_not_ask(viewer, maintainer, attempt) -> None:
    assert stacks(viewer, attempt)["can_ask"] is False
    assert_problem(viewer.post(path(attempt), {"rank": 0}), 403, "permission_denied")
    assert stacks(maintainer, attempt)["can_ask"] is True
    ask(maintainer, attempt)


@pytest.mark.parametrize(
    ("wrong", "status"), [({"rank": -1}, 400), ({"rank": "x"}, 400), ({"rank": 0, "pid": 0}, 400)]
)
def test_what_is_no_rank_or_process_is_refused(member, attempt, wrong, status) -> None:
    assert member.post(path(attempt), wrong).status_code == status


def test_a_rank_that_the_job_has_not_is_not_found(member, attempt) -> None:
    problem = assert_problem(member.post(path(attempt), {"rank": 3}), 404, "not_found")
    assert "it has 3, from 0" in problem["detail"]


def test_a_rank_is_queried_once_at_a_time(member, attempt) -> None:
    ask(member, attempt, rank=1)
    problem = assert_problem(member.post(path(attempt), {"rank": 1}), 409, "conflict")
    assert "is being asked already" in problem["detail"]
    ask(member, attempt, rank=0)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"contacted_at": None}, "once its first node has reported"),
        ({"carrier": Carrier.PULL}, "do not reach this portal"),
        ({"ended_at": "2026-01-01T00:00:00Z"}, "only while it runs"),
    ],
)
def test_where_no_node_can_be_queried_the_refusal_says_why(member, attempt, fields, why) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(**fields)
    problem = assert_problem(member.post(path(attempt), {"rank": 0}), 409, "conflict")
    assert why in problem["detail"]


def test_a_job_without_an_attempt_has_none_and_cannot_be_queried(member, project) -> None:
    job = make_job(project, submitted_by=member.user)
    found = member.get(f"/projects/rl/jobs/{job.pk}/stacks").json()
    assert (found["attempt"], found["can_ask"], found["dumps"]) == (None, False, [])
    assert member.post(f"/projects/rl/jobs/{job.pk}/stacks", {"rank": 0}).status_code == 409


def answer(attempt: Attempt, dump: int, rank: int, text: str) -> None:
    reported = {"ask": dump, "pid": 7, "text": text}
    tell(attempt, reported, {"ask": dump, "done": True}, rank=rank)


def test_all_ranks_are_asked_at_once_and_equal_stacks_are_grouped(member, attempt) -> None:
    asked = member.post(f"{path(attempt)}/all", {})
    assert asked.status_code == 202, asked.content
    ids = dict(zip((0, 1, 2), asked.json()["asked_together"], strict=True))
    assert JobEvent.objects.latest("pk").message == "Stack dump of all nodes, attempt 1."
    assert len(heartbeat(attempt)["stacks"]) == 3
    for rank, text in {0: TEXT, 1: TEXT, 2: TEXT.replace("waits", "reads")}.items():
        answer(attempt, ids[rank], rank, text)
    groups = stacks(member, attempt)["groups"]
    assert [(each["ranks"], each["where"]) for each in groups] == [
        ([0, 1], "waits (wait.py:5)"),
        ([2], "reads (wait.py:5)"),
    ]
    assert groups[0]["frames"] == ["waits (wait.py:5)"]


def test_a_later_request_of_one_rank_leaves_the_groups(member, attempt) -> None:
    together = member.post(f"{path(attempt)}/all", {}).json()["asked_together"]
    for rank, dump in enumerate(together):
        answer(attempt, dump, rank, TEXT)
    alone = ask(member, attempt, rank=1)
    found = stacks(member, attempt)
    assert found["dumps"][0]["id"] == alone["id"]
    assert found["asked_together"] == together
    assert [group["ranks"] for group in found["groups"]] == [[0, 1, 2]]


def test_all_ranks_are_refused_while_one_is_pending(member, attempt) -> None:
    ask(member, attempt, rank=1)
    assert_problem(member.post(f"{path(attempt)}/all", {}), 409, "conflict")


def test_of_too_many_ranks_the_silent_ones_are_asked_first(member, attempt) -> None:
    attempt.job.num_nodes = 70
    attempt.job.save()
    now = clock.now()
    Attempt.objects.update(run_started_at=now - timedelta(hours=1))
    Worker.objects.bulk_create(
        Worker(attempt=attempt, rank=rank, status=WorkerStatus.RUNNING) for rank in range(70)
    )
    written = {str(rank): int(now.timestamp()) - (600 if rank == 69 else 1) for rank in range(70)}
    LogHead.objects.update_or_create(attempt=attempt, defaults={"last_lines": written})
    asked = member.post(f"{path(attempt)}/all", {}).json()
    assert [dump["rank"] for dump in reversed(asked["dumps"])] == [*range(63), 69]


def test_texts_are_parsed_once_for_each_answer_not_at_each_poll(
    member, attempt, monkeypatch
) -> None:
    parsed: list[list[int]] = []

    def counted(texts: Iterable[tuple[int, str]]) -> list[StackGroup]:
        found = list(texts)
        parsed.append([rank for rank, _ in found])
        return stack_groups(found)

    monkeypatch.setattr(readers_stacks, "stack_groups", counted)
    together = member.post(f"{path(attempt)}/all", {}).json()["asked_together"]
    parsed.clear()
    for rank in (0, 1):
        answer(attempt, together[rank], rank, TEXT)
        polls = [stacks(member, attempt)["groups"] for _ in range(3)]
        assert [poll[0]["ranks"] for poll in polls] == [[*range(rank + 1)]] * 3
    assert parsed == [[0], [0, 1]]
