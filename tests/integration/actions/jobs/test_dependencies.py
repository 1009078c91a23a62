"""Jobs with dependencies: refusals at submit, and the effects of a dependency's end."""

from __future__ import annotations

import pytest

from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.hold import release_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.actions.jobs.submit import submit_job, submit_jobs
from jobs.errors import InvalidSpecError
from jobs.lifecycle import move
from jobs.models import Job, JobDependency
from jobs.models.startable_jobs import startable_jobs
from jobs.reconcilers import dependencies
from jobs.statuses import JobStatus, Role, StopReason, WaitReason
from tests.factories import make_actor, make_job, make_project

pytestmark = pytest.mark.feature("S2.6")


@pytest.fixture
def project(db):
    return make_project("rl")


@pytest.fixture
def member(project):
    return make_actor(project, Role.MEMBER)


def spec(name: str, *needs, **portal) -> dict:
    portal = {**({"depends_on": list(needs)} if needs else {}), **portal}
    return {"name": name, "run": "true", "resources": {"infra": "local"}, "portal": portal}


def end(job: Job, status: JobStatus, reason: StopReason = StopReason.USER_CODE) -> None:
    """Bring a queued job to an end, as its life would."""
    job.refresh_from_db()
    if status != JobStatus.CANCELLED:
        for step in (JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING):
            move(job, step)
    move(job, status, reason=reason)


def settle() -> None:
    """Run due steps until none is left."""
    while found := dependencies.due():
        for job_id in found:
            dependencies.step(job_id)


def startable() -> set[str]:
    from jobs.ground import clock

    return set(startable_jobs(clock.now()).values_list("name", flat=True))


def errors(caught) -> list[tuple[int | None, str, str]]:
    return [(row.get("document"), row["path"], row["code"]) for row in caught.value.data["errors"]]


def test_a_job_waits_until_the_newest_of_that_name_has_succeeded(project, member):
    older = submit_job(member, project, spec("prepare"))
    newer = submit_job(member, project, spec("prepare"))
    job = submit_job(member, project, spec("train", "prepare"))
    assert (job.wait_reason, job.message) == (
        WaitReason.DEPENDENCY,
        f"Waits for job {newer.pk} (prepare) to succeed.",
    )
    end(older, JobStatus.SUCCEEDED)
    assert startable() == {"prepare"}
    end(newer, JobStatus.SUCCEEDED)
    # At once, before any reader.
    assert startable() == {"train"}
    settle()
    job.refresh_from_db()
    assert (job.status, job.wait_reason, job.message) == (JobStatus.QUEUED, "", "")


def test_a_number_and_a_mapping_name_jobs_as_well(project, member):
    first = submit_job(member, project, spec("first"))
    submit_job(member, project, spec("second"))
    needs = [first.pk, {"job": "second", "after": "end"}]
    job = submit_job(member, project, spec("third", *needs))
    assert job.message == (
        f"Waits for job {first.pk} (first) to succeed and job {first.pk + 1} (second) to end."
    )
    end(first, JobStatus.SUCCEEDED)
    settle()
    job.refresh_from_db()
    assert job.message == f"Waits for job {first.pk + 1} (second) to end."


def test_after_end_starts_also_after_a_failure(project, member):
    first = submit_job(member, project, spec("first"))
    submit_job(member, project, spec("report", {"job": "first", "after": "end"}))
    end(first, JobStatus.FAILED)
    settle()
    assert startable() == {"report"}


def test_a_failure_ends_all_that_wait_for_it_and_says_which_job_it_was(project, member):
    a, b, c = submit_jobs(member, project, [spec("a"), spec("b", "a"), spec("c", "b")])
    end(a, JobStatus.FAILED)
    assert startable() == set()
    settle()
    b.refresh_from_db()
    c.refresh_from_db()
    assert (b.status, b.stop_reason) == (JobStatus.FAILED, StopReason.DEPENDENCY)
    assert b.message == f"It needs what did not succeed: job {a.pk} (a) failed."
    assert (c.status, c.message) == (
        JobStatus.FAILED,
        f"It needs what did not succeed: job {b.pk} (b) failed.",
    )


def test_a_cancelled_job_is_no_success(project, member):
    a, b = submit_jobs(member, project, [spec("a"), spec("b", "a")])
    cancel_job(member, a)
    settle()
    b.refresh_from_db()
    assert b.status == JobStatus.FAILED
    assert b.message == f"It needs what did not succeed: job {a.pk} (a) was cancelled."


def test_hold_keeps_the_job_until_it_is_released(project, member):
    a, b = submit_jobs(member, project, [spec("a"), spec("b", "a", if_dependency_fails="hold")])
    end(a, JobStatus.FAILED)
    settle()
    b.refresh_from_db()
    assert (b.status, b.held, b.wait_reason) == (JobStatus.QUEUED, True, WaitReason.HELD)
    assert "job" in b.message and startable() == set()
    release_job(member, b)
    settle()
    assert startable() == {"b"}


def test_run_starts_once_all_have_ended(project, member):
    a, b, _ = submit_jobs(
        member, project, [spec("a"), spec("b"), spec("c", "a", "b", if_dependency_fails="run")]
    )
    end(a, JobStatus.FAILED)
    settle()
    assert startable() == {"b"}
    end(b, JobStatus.FAILED)
    settle()
    assert startable() == {"c"}


def test_a_released_job_says_again_what_it_waits_for(project, member):
    a, b = submit_jobs(member, project, [spec("a"), spec("b", "a", hold=True)])
    assert b.wait_reason == WaitReason.HELD
    release_job(member, b)
    assert (b.wait_reason, b.message) == (
        WaitReason.DEPENDENCY,
        f"Waits for job {a.pk} (a) to succeed.",
    )


def test_unknown_jobs_and_circles_are_refused_together_and_nothing_is_stored(project, member):
    sources = [
        spec("a", "c"),
        spec("b", "a", "nowhere", 4711),
        spec("c", "b"),
        spec("d", "e"),
        spec("e", "d"),
    ]
    with pytest.raises(InvalidSpecError) as caught:
        submit_jobs(member, project, sources)
    assert sorted(errors(caught)) == [
        (0, "portal.depends_on", "dependency_cycle"),
        (1, "portal.depends_on[1]", "unknown_job"),
        (1, "portal.depends_on[2]", "unknown_job"),
        (3, "portal.depends_on", "dependency_cycle"),
    ]
    messages = " ".join(row["message"] for row in caught.value.data["errors"])
    assert "a needs c needs b needs a" in messages
    assert not Job.objects.exists()


def test_a_job_that_needs_its_own_name_means_an_earlier_one(project, member):
    with pytest.raises(InvalidSpecError):
        submit_job(member, project, spec("train", "train"))
    make_job(project, name="train", status=JobStatus.SUCCEEDED)
    assert submit_job(member, project, spec("train", "train")).wait_reason == ""


def test_a_job_of_another_project_is_unknown_here(project, member):
    other = make_job(make_project("sft"), name="prepare")
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(member, project, spec("train", "prepare", other.pk))
    assert [code for _, _, code in errors(caught)] == ["unknown_job", "unknown_job"]


def test_what_has_failed_already_is_refused_with_what_to_do(project, member):
    make_job(project, name="prepare", status=JobStatus.FAILED)
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(member, project, spec("train", "prepare"))
    assert errors(caught) == [(None, "portal.depends_on[0]", "dependency_failed")]
    assert "after: end" in caught.value.data["errors"][0]["message"]
    submit_job(member, project, spec("report", {"job": "prepare", "after": "end"}))
    assert startable() == {"report"}


def test_a_deleted_job_still_counts_as_it_ended(project, member):
    a, b = submit_jobs(member, project, [spec("a"), spec("b", "a")])
    end(a, JobStatus.SUCCEEDED)
    number = a.pk
    delete_job(make_actor(project, Role.MAINTAINER), a)
    settle()
    row = JobDependency.objects.get(job=b)
    assert (row.needs, row.needs_number, row.ended_as) == (None, number, "SUCCEEDED")
    assert startable() == {"b"}


def test_an_unrecorded_end_is_found(project, member):
    a, b = submit_jobs(member, project, [spec("a"), spec("b", "a")])
    end(a, JobStatus.SUCCEEDED)
    JobDependency.objects.update(ended_as="", noted=False)
    assert startable() == set()
    assert dependencies.due() == [b.pk]
    settle()
    assert startable() == {"b"}


def test_a_rerun_looks_names_up_again(project, member):
    a, b = submit_jobs(member, project, [spec("a"), spec("b", "a")])
    end(a, JobStatus.FAILED)
    settle()
    again = rerun_job(member, a)
    later = rerun_job(member, b)
    assert later.message == f"Waits for job {again.pk} (a) to succeed."


def test_the_same_key_gives_the_same_jobs(project, member):
    sources = [spec("a"), spec("b", "a")]
    first = submit_jobs(member, project, sources, idempotency_key="k")
    again = submit_jobs(member, project, sources, idempotency_key="k")
    assert [job.pk for job in again] == [job.pk for job in first]
    assert Job.objects.count() == 2


def test_jobs_may_come_before_those_they_need(project, member):
    b, a = submit_jobs(member, project, [spec("b", "a"), spec("a")])
    assert a.pk < b.pk
    assert startable() == {"a"}
