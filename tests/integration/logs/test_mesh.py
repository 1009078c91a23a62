"""Mesh trees among the frames: the latest, failures with times, and no log lines."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.actions.jobs.delete import delete_job
from jobs.errors import InvalidFrameError
from jobs.ground import clock
from jobs.logs.mesh_frames import MOST_NODES
from jobs.models import Attempt, Cluster, Job, LogHead, MeshTree
from jobs.statuses import ClusterStatus, JobStatus, Role
from tests.factories import make_actor
from tests.frame_bytes import T0, frame
from tests.mesh_frames import actor, dead, host, proc, tree
from tests.sample_frames import sample

pytestmark = pytest.mark.django_db


def kept() -> MeshTree:
    return MeshTree.objects.get()


def test_the_newest_tree_is_the_latest_and_no_line(attempt, post) -> None:
    assert post(tree(10, host(0)), frame(1), tree(0), sample(0)) == {"0": 1}
    assert [each["rank"] for each in kept().latest["hosts"]] == [0]
    assert kept().at.timestamp() == T0 + 10
    assert LogHead.objects.get(pk=attempt.pk).next_line == 2
    post(tree(5))
    assert len(kept().latest["hosts"]) == 1


def test_what_fails_is_kept_with_its_moment_and_place_in_the_log(attempt, post) -> None:
    post(tree(0), frame(1, rank=1), frame(2, rank=1))
    post(tree(10, host(0), host(1, procs=[dead()])))
    post(tree(20, host(0), host(1, procs=[dead()])))
    post(tree(30, host(0), host(1, procs=[])))
    (change,) = kept().changes
    assert (change["rank"], change["state"], change["at"]) == (1, "dead", T0 + 10)
    assert change["line"] == 3
    assert kept().at.timestamp() == T0 + 30


def test_a_driver_that_does_not_answer_leaves_what_was_reported_before(attempt, post) -> None:
    post(tree(0))
    post(tree(10, answers=False, why="no answer", hosts=[]))
    assert (kept().latest["answers"], kept().latest["why"]) == (False, "no answer")
    assert len(kept().latest["hosts"]) == 2


def test_a_clock_that_is_ahead_does_not_silence_the_mesh(attempt, post) -> None:
    post({**tree(0), "t": 2e10})
    assert kept().at <= clock.now()


def many(nodes: int) -> list[dict[str, Any]]:
    return [host(0, procs=[proc(actors=[]) for _ in range(nodes)])]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 1},
        {"t": -1},
        {"seq": None},
        {"seq": 1},
        {"answers": 1},
        {"answers": None},
        {"why": None},
        {"why": "x" * 4001},
        {"left_out": -1},
        {"left_out": True},
        {"hosts": None},
        {"hosts": {}},
        {"hosts": [1]},
        {"hosts": [host(2)]},
        {"hosts": [host(-1)]},
        {"hosts": [host(True)]},
        {"hosts": [host(0, state="fine")]},
        {"hosts": [host(0, state=["up"])]},
        {"hosts": [host(0, id="x" * 301)]},
        {"hosts": [host(0, procs="none")]},
        {"hosts": [host(0, procs=[[]])]},
        {"hosts": [host(0, procs=[proc(state="up")])]},
        {"hosts": [host(0, procs=[proc(actors=None)])]},
        {"hosts": [host(0, procs=[proc(actors=[actor(messages=2**60)])])]},
        {"hosts": [host(0, procs=[proc(actors=[actor(messages=1.5)])])]},
        {"hosts": [host(0, procs=[proc(actors=[actor(kind=None)])])]},
        {"hosts": [host(0, procs=[proc(actors=[actor(why="x" * 4000)] * 70)])]},
        {"hosts": many(MOST_NODES)},
    ],
)
def test_a_tree_that_is_not_sound_is_refused(attempt, post, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidFrameError):
        post(frame(1), {**tree(0), **wrong})
    assert not MeshTree.objects.exists()


def test_unrequested_answers_are_not_stored(attempt, post) -> None:
    odd = actor("a\x00b\ud800<1>", more="x" * 5000)
    post(tree(0, host(0, procs=[proc(actors=[odd], more=1)], more={}), more=[]))
    latest = kept().latest
    assert set(latest) == {"answers", "why", "left_out", "hosts"}
    (found,) = latest["hosts"]
    assert set(found) == {"id", "rank", "state", "why", "left_out", "procs"}
    assert set(found["procs"][0]) == {"id", "state", "why", "left_out", "actors"}
    (stored,) = found["procs"][0]["actors"]
    assert set(stored) == {"id", "kind", "state", "doing", "messages", "why"}
    assert stored["id"] == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}<1>"


def test_a_tree_stays_after_the_end_and_goes_with_its_job(attempt, post) -> None:
    post(tree(0), frame(1, "end", reason="COMPLETED", exit_code=0))
    Cluster.objects.update(status=ClusterStatus.GONE)
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=clock.now())
    assert kept().attempt_id == attempt.pk
    job = Job.objects.get(pk=Attempt.objects.get().job_id)
    delete_job(make_actor(job.project, Role.ADMIN), job)
    assert not MeshTree.objects.exists()
