"""Stack dumps over REST: storage of the answers, and for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.actions.attempts.ask_stacks import MOST_KEPT
from jobs.actions.attempts.end_attempt import close_attempt
from jobs.actions.attempts.hand_secrets import hand_secrets
from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.actions.jobs.delete import delete_job
from jobs.actions.projects.secrets import set_secret
from jobs.attempt_tokens import attempt_token
from jobs.errors import InvalidFrameError
from jobs.ground import clock
from jobs.logs import handed
from jobs.logs.redaction import RedactionCache
from jobs.models import Attempt, Cluster, Job, StackDump
from jobs.models.stack_dump import ANSWER_WITHIN
from jobs.statuses import ClusterStatus, JobStatus, Role, StackState, StopReason
from monarch_client.runner.vocabulary.limits import MAX_DUMP_CHARS, MAX_DUMP_PROCESSES
from tests.factories import make_actor, make_attempt, make_job, make_spec
from tests.frame_bytes import body, frame
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


def test_an_answer_that_says_why_is_a_failure_with_it(member, attempt) -> None:
    first, second = ask(member, attempt, rank=0), ask(member, attempt, rank=1)
    tell(attempt, {"ask": first["id"], "done": True, "why": "There is no py-spy on this node"})
    denied = {"ask": second["id"], "pid": 7, "text": "", "why": "py-spy may not read this process"}
    tell(attempt, denied, {"ask": second["id"], "done": True}, rank=1)
    failed = stacks(member, attempt)["dumps"]
    assert [(each["state"], each["why"]) for each in failed] == [
        ("failed", "py-spy may not read this process"),
        ("failed", "There is no py-spy on this node"),
    ]


def test_secrets_are_masked_in_what_is_kept(member, project, monkeypatch) -> None:
    monkeypatch.setattr(handed, "_cache", RedactionCache())
    set_secret(make_actor(project, Role.MAINTAINER), project, "A", "hunter2-hunter2!")
    spec = make_spec(secrets=["A"])
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=member.user, spec=spec)
    attempt = make_attempt(job, contacted_at=clock.now())
    hand_secrets(job, attempt)
    requested = ask(member, attempt)
    said = "python train.py --key hunter2-hunter2!"
    reported = {
        "ask": requested["id"],
        "pid": 7,
        "command": said,
        "text": f"Process 7: {said}\n\nThread 7",
    }
    tell(attempt, reported, {"ask": requested["id"], "done": True, "why": f"x {said}"})
    row = StackDump.objects.get()
    assert "hunter2" not in f"{row.processes} {row.why}"
    assert row.processes[0]["command"] == "python train.py --key ***"


def test_no_rank_answers_for_another_or_without_a_request(member, attempt, project) -> None:
    requested = ask(member, attempt, rank=1)
    other = make_attempt(make_job(project, status=JobStatus.RUNNING, num_nodes=3))
    reported = {"ask": requested["id"], "pid": 7, "text": TEXT}
    tell(attempt, reported, {"ask": requested["id"], "done": True}, rank=0)
    tell(other, reported, {"ask": requested["id"], "done": True}, rank=1)
    tell(attempt, {"ask": requested["id"] + 1, "done": True}, rank=1)
    (dump,) = stacks(member, attempt)["dumps"]
    assert (dump["state"], dump["processes"]) == ("asked", [])


def test_what_is_kept_is_bounded_whatever_a_runner_sends(member, attempt) -> None:
    requested = ask(member, attempt)
    long = {"ask": requested["id"], "pid": 7, "text": "x" * 60_000}
    for _ in range(10):
        tell(attempt, long)
    short = {"ask": requested["id"], "pid": 8, "text": "y"}
    tell(attempt, *[short] * 100, {"ask": requested["id"], "done": True})
    (dump,) = stacks(member, attempt)["dumps"]
    assert len(dump["processes"]) == MAX_DUMP_PROCESSES
    assert sum(len(each["text"]) for each in dump["processes"]) <= MAX_DUMP_CHARS
    assert dump["left_out"] == 110 - MAX_DUMP_PROCESSES


def test_the_latest_dumps_of_an_attempt_are_kept(member, attempt) -> None:
    requested = []
    for _ in range(MOST_KEPT + 3):
        requested.append(ask(member, attempt)["id"])
        tell(attempt, {"ask": requested[-1], "done": True, "why": "no"})
    kept = [each["id"] for each in stacks(member, attempt)["dumps"]]
    assert kept == requested[: -MOST_KEPT - 1 : -1]


def test_many_ranks_can_be_queried_at_once_and_none_of_them_is_forgotten(member, attempt) -> None:
    attempt.job.num_nodes = MOST_KEPT + 1
    attempt.job.save()
    for rank in range(MOST_KEPT):
        ask(member, attempt, rank=rank)
    assert len(stacks(member, attempt)["dumps"]) == MOST_KEPT
    refused = member.post(path(attempt), {"rank": MOST_KEPT})
    assert_problem(refused, 409, "conflict")
    StackDump.objects.update(asked_at=clock.now() - ANSWER_WITHIN - timedelta(seconds=1))
    ask(member, attempt, rank=MOST_KEPT)


def test_only_one_dumps_texts_are_sent_at_a_time(member, attempt) -> None:
    first, second = (ask(member, attempt, rank=rank) for rank in (0, 1))
    for rank, requested in enumerate((first, second)):
        report = {"ask": requested["id"], "pid": 8, "text": f"of rank {rank}"}
        tell(attempt, report, {"ask": requested["id"], "done": True}, rank=rank)

    def texts(**query: Any) -> list[list[str]]:
        dumps = stacks(member, attempt, **query)["dumps"]
        return [[each["text"] for each in dump["processes"]] for dump in dumps]

    assert texts() == [["of rank 1"], []]
    assert texts(id=first["id"]) == [["of rank 0"]]


def test_without_an_answer_it_has_failed_after_a_while_and_can_be_queried_again(
    member, attempt
) -> None:
    requested = ask(member, attempt)
    late = clock.now() - ANSWER_WITHIN - timedelta(seconds=1)
    StackDump.objects.update(asked_at=late)
    (dump,) = stacks(member, attempt)["dumps"]
    assert dump["state"] == "failed"
    assert dump["why"]
    assert "stacks" not in heartbeat(attempt)
    ask(member, attempt)
    assert StackDump.objects.get(pk=requested["id"]).state == StackState.FAILED


def test_an_answer_that_is_late_is_shown_all_the_same(member, attempt) -> None:
    requested = ask(member, attempt)
    StackDump.objects.update(asked_at=clock.now() - ANSWER_WITHIN * 2)
    tell(
        attempt,
        {"ask": requested["id"], "pid": 7, "text": TEXT},
        {"ask": requested["id"], "done": True},
    )
    assert stacks(member, attempt)["dumps"][0]["state"] == "done"


@pytest.mark.parametrize("by", ["portal", "runner"])
def test_the_end_of_an_attempt_ends_open_requests_and_keeps_their_answers(
    member, attempt, by
) -> None:
    first = ask(member, attempt)
    tell(attempt, {"ask": first["id"], "pid": 7, "text": TEXT}, {"ask": first["id"], "done": True})
    ask(member, attempt)
    if by == "portal":
        close_attempt(attempt, StopReason.WORKER_LOST, "gone")
    else:
        token = attempt_token(attempt.job_id, attempt.number)
        ingest_frames(attempt.pk, token, body(frame(3, "end", reason="USER_CODE", exit_code=1)))
    found = stacks(member, attempt)
    assert [each["state"] for each in found["dumps"]] == ["failed", "done"]
    assert "attempt ended" in found["dumps"][0]["why"]
    assert (found["is_over"], found["can_ask"]) == (True, False)
    (kept,) = stacks(member, attempt, id=first["id"])["dumps"]
    assert kept["processes"][0]["text"] == TEXT


def test_dumps_of_an_older_attempt_are_found_by_its_number_or_their_own(member, attempt) -> None:
    first = ask(member, attempt)
    close_attempt(attempt, StopReason.WORKER_LOST, "gone")
    make_attempt(attempt.job, contacted_at=clock.now())
    assert stacks(member, attempt)["dumps"] == []
    assert [each["id"] for each in stacks(member, attempt, attempt=1)["dumps"]] == [first["id"]]
    assert [each["id"] for each in stacks(member, attempt, id=first["id"])["dumps"]] == [
        first["id"]
    ]


def test_dumps_of_another_job_are_not_found(member, attempt, project) -> None:
    other = make_attempt(make_job(project, status=JobStatus.RUNNING), contacted_at=clock.now())
    theirs = StackDump.objects.create(attempt=other, rank=0)
    assert stacks(member, attempt, id=theirs.pk)["dumps"] == []


def test_they_go_with_the_job(member, maintainer, attempt, project) -> None:
    ask(member, attempt)
    close_attempt(attempt, StopReason.WORKER_LOST, "gone")
    Cluster.objects.update(status=ClusterStatus.GONE)
    ended = {"status": JobStatus.FAILED, "ended_at": clock.now()}
    Job.objects.filter(pk=attempt.job_id).update(**ended)
    delete_job(make_actor(project, Role.MAINTAINER), Job.objects.get(pk=attempt.job_id))
    assert not StackDump.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"ask": "x"},
        {"ask": -1},
        {"ask": 1, "text": 7},
        {"ask": 1, "done": "yes"},
        {"ask": 1, "pid": "x"},
        {"ask": 1, "left_out": -1},
    ],
)
def test_frames_that_are_not_sound_are_refused(attempt, wrong) -> None:
    with pytest.raises(InvalidFrameError):
        tell(attempt, wrong)


def test_null_characters_do_no_harm(member, attempt) -> None:
    requested = ask(member, attempt)
    reported = {"ask": requested["id"], "pid": 7, "command": "a\0b", "text": "Process\0 \ud800"}
    tell(attempt, reported, {"ask": requested["id"], "done": True})
    assert stacks(member, attempt)["dumps"][0]["state"] == "done"
