"""GET .../jobs/{id}/mesh: hosts, procs and actors, failures with times and evidence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.errors import LogStoreAwayError
from jobs.ground import clock
from jobs.models import Attempt, MeshTree, Worker
from jobs.readers.mesh import LINES_OF_A_LOSS, SILENT_AFTER
from jobs.statuses import JobKind, JobStatus, WorkerStatus
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, lines
from tests.mesh_frames import actor, dead, host, proc, tree


@pytest.fixture
def attempt(project) -> Attempt:
    job = make_job(project, status=JobStatus.RUNNING, num_nodes=3, kind=JobKind.MONARCH)
    attempt = make_attempt(job)
    for rank in range(3):
        Worker.objects.create(
            attempt=attempt, rank=rank, mesh="trainers", status=WorkerStatus.RUNNING
        )
    return attempt


def reported(attempt: Attempt, *frames) -> None:
    """Ingest the frames, as if they were sent just now."""
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, body(*frames))
    MeshTree.objects.update(at=clock.now() - timedelta(seconds=1))


def mesh(viewer, of: Attempt, **query):
    answer = viewer.get(f"/projects/rl/jobs/{of.job_id}/mesh", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def now(after_s: float = 0) -> dict[str, float]:
    return {"t": clock.now().timestamp() + after_s}


def test_hosts_procs_and_actors_are_reported_with_their_states(viewer, attempt) -> None:
    failed = actor("worker<a2>", state="failed", why="ValueError: bad number 7")
    sick = proc("trainers<p2>", state="poisoned", why="1 of its actors failed", actors=[failed])
    reported(attempt, {**tree(0, host(0, procs=[proc(), sick]), host(None)), **now()})
    found = mesh(viewer, attempt)
    assert (found["attempt"], found["is_known"], found["is_monarch"]) == (1, True, True)
    first, driver = found["hosts"]
    assert (first["rank"], first["mesh"], first["state"]) == (0, "trainers", "up")
    assert [each["state"] for each in first["procs"]] == ["alive", "poisoned"]
    (reported_actor,) = first["procs"][1]["actors"]
    assert (reported_actor["state"], reported_actor["why"]) == (
        "failed",
        "ValueError: bad number 7",
    )
    assert (driver["rank"], driver["mesh"]) == (None, "")
    assert [(each["actor"], each["state"]) for each in found["changes"]] == [
        ("worker<a2>", "failed"),
        ("", "poisoned"),
    ]


def test_a_loss_comes_with_evidence_and_the_last_lines_of_its_rank(viewer, attempt) -> None:
    reported(attempt, {**tree(0), **now()}, *lines(1, 20, rank=1), *lines(1, 3))
    reported(
        attempt, {**tree(0, host(0), host(1, procs=[dead()])), **now()}, *lines(21, 22, rank=1)
    )
    reported(attempt, *lines(23, 25, rank=1))
    (change,) = mesh(viewer, attempt)["changes"]
    assert (change["rank"], change["was"], change["state"]) == (1, "alive", "dead")
    assert change["is_failure"] and "404 not_found" in change["why"]
    # The lines before the loss was known, not what others of the host wrote afterwards.
    texts = [line["text"] for line in change["lines"]]
    assert texts == [f"r1 s{number}" for number in range(23 - LINES_OF_A_LOSS, 23)]


def test_a_loss_is_reported_without_its_lines_while_the_store_of_logs_is_away(
    viewer, attempt, monkeypatch
) -> None:
    def away(*_: object) -> None:
        raise LogStoreAwayError

    monkeypatch.setattr("jobs.readers.mesh.last_lines", away)
    reported(attempt, {**tree(0), **now()}, *lines(1, 3, rank=1))
    reported(attempt, {**tree(0, host(0), host(1, procs=[dead()])), **now()})
    (change,) = mesh(viewer, attempt)["changes"]
    assert (change["state"], change["lines"]) == ("dead", [])


def test_a_carrier_that_falls_silent_makes_all_states_unknown(viewer, attempt) -> None:
    reported(attempt, {**tree(0, host(0), host(1, procs=[dead()])), **now()})
    MeshTree.objects.update(at=clock.now() - SILENT_AFTER - timedelta(seconds=5))
    found = mesh(viewer, attempt)
    assert not found["is_known"] and "The last report of the meshes" in found["why"]
    first, second = found["hosts"]
    assert (first["state"], first["told"]) == ("unknown", "up")
    assert (second["procs"][0]["state"], second["procs"][0]["told"]) == ("unknown", "dead")


def test_a_driver_that_does_not_answer_makes_all_states_unknown(viewer, attempt) -> None:
    reported(attempt, {**tree(0), **now()})
    reported(attempt, {**tree(0, answers=False, why="no answer in 6.0 s"), **now()})
    found = mesh(viewer, attempt)
    assert (found["is_known"], found["why"]) == (False, "no answer in 6.0 s")
    assert {each["state"] for each in found["hosts"]} == {"unknown"}
    assert found["changes"][0]["state"] == "silent"


def test_after_the_end_it_is_what_was_reported_last(viewer, attempt) -> None:
    reported(attempt, {**tree(0), **now()})
    MeshTree.objects.update(at=clock.now() - timedelta(hours=5))
    Attempt.objects.update(ended_at=clock.now())
    found = mesh(viewer, attempt)
    assert (found["is_over"], found["is_final"], found["is_known"]) == (True, False, True)
    assert found["hosts"][0]["state"] == "up"
    second = make_attempt(attempt.job)
    assert mesh(viewer, second)["hosts"] == []
    assert mesh(viewer, second, attempt=1)["is_final"]


@pytest.mark.parametrize(("query", "status"), [({"attempt": 9}, 404), ({"attempt": "x"}, 400)])
def test_what_is_not_there_is_reported(viewer, attempt, query, status) -> None:
    answer = viewer.get(f"/projects/rl/jobs/{attempt.job_id}/mesh", query)
    assert answer.status_code == status


def test_a_plain_job_has_no_meshes(viewer, project) -> None:
    found = viewer.get(f"/projects/rl/jobs/{make_job(project).pk}/mesh").json()
    assert (found["is_monarch"], found["attempt"], found["hosts"]) == (False, None, [])
