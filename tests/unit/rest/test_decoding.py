"""Clients and portals of different versions: what one adds does not break the other."""

from __future__ import annotations

import pytest

from monarch_client.errors import UnexpectedAnswerError
from monarch_client.rest.decoding import decode, decode_page
from monarch_client.wire.attempts import Attempt
from monarch_client.wire.jobs import Job
from monarch_client.wire.projects import Member
from monarch_client.wire.queue import Turn
from tests.unit.rest.fake_portal import attempt_json, job_json, stage_json


def test_keys_of_a_newer_portal_are_ignored_at_every_depth():
    stage = stage_json("run", "active", mood="sunny")
    page = {"results": [attempt_json(stages=[stage], mood="sunny")], "next": None, "mood": 1}
    assert decode_page(Attempt, page).results[0].stages[0].name == "run"


def test_a_choice_of_a_newer_portal_is_accepted():
    assert decode(Member, {"username": "ada", "role": "auditor"}).role == "auditor"


def test_fields_that_an_older_portal_lacks_have_defaults():
    older = job_json()
    for name in ("preemptible", "parent", "schedule"):
        del older[name]
    job = decode(Job, older)
    assert (job.preemptible, job.parent, job.schedule, job.array_values) == (False, None, "", {})


def test_the_queue_of_an_older_portal_has_no_expected_starts():
    turn = {
        "kind": "job", "place": "fake", "position": 1, "needs": "2 nodes",
        "job_id": 1, "project": "rl", "name": "ppo", "owner": "ada", "queue": "default",
        "priority": 50, "sentence": "",
    }  # fmt: skip
    turn["since"] = "2026-01-01T00:00:00Z"
    assert decode(Turn, turn).expected_at is None


def test_a_value_of_another_type_is_reported_with_its_path():
    wrong = attempt_json(stages=[stage_json("run", "active", duration_s="long")])
    with pytest.raises(UnexpectedAnswerError, match=r"stages\[0\]\.duration_s"):
        decode(Attempt, wrong)
