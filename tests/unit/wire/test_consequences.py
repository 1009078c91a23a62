"""Texts about what an action does to a job: true in each state, one for each action."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.statuses import JobStatus
from monarch_client.rest.decoding import decode
from monarch_client.wire.consequences import Asked, consequence_of, consequences_of
from monarch_client.wire.jobs import Job
from tests.each_case import check_each
from tests.unit.rest.fake_portal import job_json

pytestmark = pytest.mark.feature("P7.1")


def job(status: str, attempts: int = 1, **fields: Any) -> Job:
    is_final = JobStatus(status).is_final
    return decode(Job, job_json(status=status, attempt_count=attempts, is_final=is_final, **fields))


def test_each_state_has_its_own_text_for_each_action():
    def says(action: str, status: str, attempts: int, text: str) -> None:
        assert consequence_of(Asked(action), job(status, attempts, num_nodes=2)) == text

    check_each(
        [
            (
                "cancel", "QUEUED", 0,
                "It has not started: it has no machines and has cost nothing. It leaves the queue.",
            ),
            (
                "cancel", "QUEUED", 1,
                ("It waits to start again, and has no machines now. It leaves the queue. "
                 "The log is kept."),
            ),
            (
                "cancel", "PROVISIONING", 1,
                "The start of its 2 nodes is stopped. Its program does not run.",
            ),
            (
                "cancel", "RUNNING", 1,
                "Its processes on 2 nodes are stopped. The log is kept, and the job can be rerun.",
            ),
            ("cancel", "FAILED", 1, "It has ended already."),
            (
                "hold", "QUEUED", 0,
                "It does not start before it is released. It keeps its position.",
            ),
            (
                "hold", "RUNNING", 1,
                "It has machines already, and cannot be held. Cancel it, and run it again later.",
            ),
            (
                "rerun", "RUNNING", 1,
                ("It has not ended: a second job of the same specification is queued, and both may "
                "run at once."),
            ),
            (
                "rerun", "FAILED", 1,
                "Its specification is submitted again as a new job. This job stays as it is.",
            ),
            ("delete", "QUEUED", 0, "It has not ended, and is not deleted: cancel it first."),
            (
                "delete", "CANCELLED", 0,
                ("It never started, and has no log. Its specification and events are deleted. This "
                "cannot be undone."),
            ),
            (
                "delete", "SUCCEEDED", 2,
                "Its log, attempts and events are deleted, too. This cannot be undone.",
            ),
        ],
        says,
    )  # fmt: skip


def test_no_state_is_without_a_text():
    for action in Asked:
        for status in JobStatus:
            for attempts in (0, 1):
                one = job(status, attempts)
                assert consequence_of(action, one)
                assert consequences_of(action, [one, one])[0].startswith(("2 ", "The "))


def test_jobs_in_the_same_state_share_a_text():
    jobs = [job("QUEUED", 0), job("RUNNING", num_nodes=2), job("RUNNING", num_nodes=3)]
    assert consequences_of(Asked.CANCEL, jobs) == [
        "Job 42: It has not started: it has no machines and has cost nothing. It leaves the queue.",
        (
            "The processes of 2 jobs on 5 nodes are stopped. The logs are kept, and the jobs can "
            "be rerun."
        ),
    ]
    assert consequences_of(Asked.DELETE, jobs[:1]) == [
        "It has not ended, and is not deleted: cancel it first."
    ]
    assert consequences_of(Asked.DELETE, []) == []
