"""A job that waits, on its page, in the table and in its array: the messages it shows and omits."""

from __future__ import annotations

import re
from datetime import timedelta

from jobs.backends.fake.backend import FakeBackend
from jobs.ground import clock
from jobs.models import Attempt, Job, JobArray
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job, make_project, make_spec


def test_the_badge_of_a_held_job_says_that_it_is_held(viewer, project):
    held = make_job(project, held=True, wait_reason="HELD", message="Held by ada.")
    other = make_job(project)
    for page in (viewer.text(f"/rl/jobs/{held.pk}"), viewer.text("/rl/jobs")):
        assert "Queued, held" in page
    assert "Queued, held" not in viewer.text(f"/rl/jobs/{other.pk}")


def test_a_job_that_a_sentence_names_is_a_link_for_those_who_see_it(viewer, project):
    mine, hidden = make_job(project), make_job(make_project("evals"))
    said = f"Waits for job {mine.pk} <b> and job {hidden.pk}."
    job = make_job(project, wait_reason="DEPENDENCY", message=said)
    job.dependencies.create(needs=mine, needs_number=mine.pk, needs_name=mine.name)
    html = viewer.get(f"/rl/jobs/{job.pk}").content.decode()
    assert f'<a href="/rl/jobs/{mine.pk}">job {mine.pk}</a> &lt;b&gt;' in html
    assert f"and job {hidden.pk}." in html and f"jobs/{hidden.pk}" not in html


def test_a_job_that_waits_once_more_does_not_say_how_long_it_ran(viewer, project):
    began = clock.now() - timedelta(minutes=2)
    job = make_job(project, started_at=began)
    make_attempt(job)
    assert "data-since" not in viewer.get("/rl/jobs").content.decode()
    assert "data-since" not in viewer.get(f"/rl/jobs/{job.pk}").content.decode()
    Job.objects.update(status=JobStatus.RUNNING)
    assert "data-since" in viewer.get("/rl/jobs").content.decode()


def test_an_estimate_is_shown_no_more_exactly_than_it_is(viewer, project, settings, tmp_path):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path)
    FakeBackend(tmp_path).set_capacity(1)
    spec = make_spec(portal={"max_duration": "30m"})
    make_attempt(make_job(project, status=JobStatus.RUNNING, spec=spec))
    Attempt.objects.update(run_started_at=clock.now() - timedelta(seconds=500))
    job = make_job(project, wait_reason="CAPACITY")
    page = viewer.text(f"/rl/jobs/{job.pk}")
    assert re.search(r"Starts at the latest in \d+ min *,", page)


def test_in_an_array_a_job_that_waits_has_neither_start_nor_duration(viewer, project):
    fields = {"size": 1, "values": [["lr", ["1"]]], "submitted_by": viewer.user}
    array = JobArray.objects.create(project=project, name="sweep", **fields)
    job = make_job(project, array=array, array_index=0, started_at=clock.now())
    html = viewer.get(f"/rl/arrays/{array.pk}").content.decode()
    row = html[html.index(f'id="job-{job.pk}"') :]
    row = row[: row.index("</tr>")]
    assert "<time" not in row
    assert row.count(" none") == 2


def test_a_job_without_machines_says_when_they_are_requested_again(viewer, project):
    soon = clock.now() + timedelta(minutes=4, seconds=30)
    job = make_job(project, wait_reason="BACKOFF", message="Full.", next_try_at=soon)
    assert "Tries again in 4 min" in viewer.text(f"/rl/jobs/{job.pk}")
    assert "tries again in 4 min" in viewer.text("/rl")
