"""Cancel, hold, release, prioritize, extend, rerun and delete from the page."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.ground import clock
from jobs.models import Job
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job, make_spec
from tests.integration.web.conftest import SOURCE, text_of


def status_of(job):
    return Job.objects.get(pk=job.pk).status


def test_a_member_cancels_their_own_job_and_stays_on_its_page(member, project):
    job = make_job(project, submitted_by=member.user)
    response = member.post(f"/rl/jobs/{job.pk}/cancel", follow=True)
    assert response.redirect_chain == [(f"/rl/jobs/{job.pk}", 302)]
    assert "Cancelled by mia." in text_of(response)
    assert status_of(job) == JobStatus.CANCELLED


def test_cancelling_an_ended_job_says_that_it_has_ended(member, project):
    job = make_job(project, status=JobStatus.SUCCEEDED, submitted_by=member.user)
    response = member.post(f"/rl/jobs/{job.pk}/cancel", follow=True)
    assert "has already ended" in text_of(response)


def test_a_member_may_not_cancel_what_others_submitted(member, project):
    job = make_job(project)
    response = member.post(f"/rl/jobs/{job.pk}/cancel")
    assert response.status_code == 403
    assert "You may not cancel others" in text_of(response)
    assert status_of(job) == JobStatus.QUEUED


def test_a_rerun_leads_to_the_new_job(member, project):
    job = make_job(project, status=JobStatus.FAILED, spec_source=SOURCE, backend_name="local")
    response = member.post(f"/rl/jobs/{job.pk}/rerun")
    again = Job.objects.get(rerun_of=job)
    assert response["Location"] == f"/rl/jobs/{again.pk}"


def test_a_rerun_without_deleted_jobs_is_offered_where_one_is_missing(member, project):
    needed = make_job(project, status=JobStatus.SUCCEEDED, name="prepare")
    spec = make_spec(portal={"depends_on": [{"job": "prepare", "after": "success"}]})
    job = make_job(project, status=JobStatus.FAILED, spec=spec, backend_name="local")
    job.dependencies.create(needs=needed, needs_number=needed.pk, needs_name="prepare")
    page = f"/rl/jobs/{job.pk}"
    assert "rerun-without-form" not in member.get(page).content.decode()
    needed.delete()
    assert "rerun-without-form" in member.get(page).content.decode()
    assert "drop_deleted" in text_of(member.post(f"{page}/rerun", follow=True))
    response = member.post(f"{page}/rerun", {"drop_deleted": "true"})
    again = Job.objects.get(rerun_of=job)
    assert response["Location"] == f"/rl/jobs/{again.pk}"
    assert again.spec["portal"].get("depends_on", []) == []


def test_a_rerun_whose_spec_no_longer_fits_leads_to_the_editor(member, project):
    spec = {"name": "x", "run": "echo", "workdir": "upload:" + "0" * 64}
    job = make_job(project, status=JobStatus.FAILED, spec=spec, spec_source="name: x\nrun: echo\n")
    response = member.post(f"/rl/jobs/{job.pk}/rerun")
    assert response["Location"] == f"/rl/jobs/new?from={job.pk}"
    assert "name: x" in member.text("/rl/jobs/new", **{"from": job.pk})


def test_a_maintainer_deletes_an_ended_job(maintainer, project):
    job = make_job(project, status=JobStatus.FAILED)
    response = maintainer.post(f"/rl/jobs/{job.pk}/delete", follow=True)
    assert response.redirect_chain == [("/rl/jobs", 302)]
    assert f"Job {job.pk} (hello) was deleted." in text_of(response)
    assert not Job.objects.filter(pk=job.pk).exists()


def test_a_running_job_is_not_deleted(maintainer, project):
    job = make_job(project, status=JobStatus.RUNNING)
    response = maintainer.post(f"/rl/jobs/{job.pk}/delete", follow=True)
    assert "cancel it first" in text_of(response)
    assert Job.objects.filter(pk=job.pk).exists()


def test_a_member_holds_and_releases_their_own_job_from_its_page(member, project):
    job = make_job(project, submitted_by=member.user)
    page = f"/rl/jobs/{job.pk}"
    assert "hold-form" in member.get(page).content.decode()
    response = member.post(f"{page}/hold", follow=True)
    assert response.redirect_chain == [(page, 302)]
    assert "Held by mia. It does not start before" in text_of(response)
    assert "hold-form" not in response.content.decode()
    assert "Held by mia." in member.text("/rl/jobs")
    response = member.post(f"{page}/release", follow=True)
    assert "Queued" in text_of(response)
    assert "release-form" not in response.content.decode()


def test_holding_a_running_job_says_what_to_do_instead(member, project):
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=member.user)
    response = member.post(f"/rl/jobs/{job.pk}/hold", follow=True)
    assert "Cancel it instead" in text_of(response)


def test_a_member_changes_the_priority_of_their_waiting_job_from_its_page(member, project):
    job = make_job(project, submitted_by=member.user)
    page = f"/rl/jobs/{job.pk}"
    assert "priority-button" in member.get(page).content.decode()
    response = member.post(f"{page}/prioritize", {"priority": "70"}, follow=True)
    assert response.redirect_chain == [(page, 302)]
    assert "default, priority 70" in text_of(response)
    response = member.post(f"{page}/prioritize", {"priority": "700"}, follow=True)
    assert "Enter a priority from 0 to 100." in text_of(response)
    assert Job.objects.get().priority == 70


def test_a_priority_that_comes_too_late_says_so(member, project):
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=member.user)
    assert "priority-button" not in member.get(f"/rl/jobs/{job.pk}").content.decode()
    response = member.post(f"/rl/jobs/{job.pk}/prioritize", {"priority": "70"}, follow=True)
    assert "has started already" in text_of(response)


@pytest.mark.parametrize("verb", ["cancel", "hold", "release", "prioritize", "rerun", "delete"])
def test_every_button_takes_a_post_from_a_permitted_user(viewer, stranger, project, verb):
    job = make_job(project, status=JobStatus.FAILED)
    path = f"/rl/jobs/{job.pk}/{verb}"
    assert viewer.get(path).status_code == 405
    assert viewer.post(path).status_code == 403
    assert stranger.post(path).status_code == 404
    assert Job.objects.count() == 1


def test_a_member_extends_their_own_job_from_its_page_once_for_each_form(member, project):
    spec = make_spec(portal={"max_duration": "2h"})
    job = make_job(project, submitted_by=member.user, status=JobStatus.RUNNING, spec=spec)
    page = f"/rl/jobs/{job.pk}"
    assert "extend-button" in member.get(page).content.decode()
    for _ in range(2):
        member.post(f"{page}/extend", {"duration": "1h", "key": "k"}, follow=True)
    assert Job.objects.get(pk=job.pk).extended_s == 3600
    response = member.post(f"{page}/extend", {"duration": "soon"}, follow=True)
    assert "Choose how long" in text_of(response)


def test_a_job_without_a_time_limit_has_no_button_to_extend_it(member, project):
    job = make_job(project, submitted_by=member.user, status=JobStatus.RUNNING)
    assert "extend-button" not in member.get(f"/rl/jobs/{job.pk}").content.decode()


@pytest.mark.feature("P6.1")
def test_a_page_says_when_a_jobs_time_is_almost_over(member, project):
    spec = make_spec(portal={"max_duration": "2h"})
    job = make_job(project, submitted_by=member.user, status=JobStatus.RUNNING, spec=spec)
    make_attempt(job, run_started_at=clock.now() - timedelta(minutes=100))
    assert "Stops in" not in member.text(f"/rl/jobs/{job.pk}")
    job.attempts.update(run_started_at=clock.now() - timedelta(minutes=110, seconds=2))
    assert "Stops in 10 min" in member.text(f"/rl/jobs/{job.pk}")


def test_labels_and_the_note_are_edited_on_the_page(member, viewer, project):
    job = make_job(project, labels={"team": "rl", "old": ""}, note="first")
    page = member.get(f"/rl/jobs/{job.pk}").content.decode()
    assert 'value="old, team=rl"' in page
    assert 'id="annotate-button"' in page
    assert 'id="annotate-button"' not in viewer.get(f"/rl/jobs/{job.pk}").content.decode()
    # Another user adds a label and changes the note while the form is open.
    Job.objects.filter(pk=job.pk).update(labels={**job.labels, "new": "1"}, note="second")
    shown = {"shown_labels": "old, team=rl", "shown_note": "first"}
    form = {**shown, "labels": "team=vision, sweep", "note": "first"}
    response = member.post(f"/rl/jobs/{job.pk}/annotate", form)
    assert response["Location"] == f"/rl/jobs/{job.pk}"
    job.refresh_from_db()
    assert job.labels == {"team": "vision", "sweep": "", "new": "1"}
    assert job.note == "second"
    member.post(f"/rl/jobs/{job.pk}/annotate", {**form, "note": "line 1\r\nline 2"})
    job.refresh_from_db()
    assert job.note == "line 1\nline 2"


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [("te am", "up to 63 letters"), (", ".join(f"l{i}" for i in range(40)), "has at most")],
)
def test_a_wrong_label_is_explained_in_the_form_which_keeps_what_was_entered(
    member, project, labels, complaint
):
    job = make_job(project, note="kept")
    form = {"labels": labels, "note": "not lost", "shown_labels": "", "shown_note": "kept"}
    response = member.post(f"/rl/jobs/{job.pk}/annotate", form)
    html = response.content.decode()
    assert response.status_code == 422
    assert complaint in html
    assert f'value="{labels}"' in html
    assert "not lost" in html
    assert 'name="shown_note" value="kept"' in html
    job.refresh_from_db()
    assert (job.labels, job.note) == ({}, "kept")
