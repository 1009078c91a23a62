"""A job's secrets leave the portal with its launch, or the job ends with what is missing."""

from __future__ import annotations

import pytest

from jobs.actions.projects.secrets import delete_secret, set_secret
from jobs.backends.fake.backend import FakeBackend
from jobs.models import Attempt, HandedSecrets
from jobs.statuses import JobStatus, Role, StopReason
from tests.factories import make_actor, make_job, make_project, make_spec
from tests.integration.reconcilers.steps import status_of

pytestmark = pytest.mark.django_db
VALUE = "hunter2-hunter2!"


@pytest.fixture
def project():
    return make_project("rl")


@pytest.fixture
def maintainer(project):
    actor = make_actor(project, Role.MAINTAINER)
    set_secret(actor, project, "A", VALUE)
    return actor


@pytest.fixture
def job(fake, project, maintainer):
    return make_job(project, spec=make_spec(secrets={"TOKEN": "A"}))


def test_the_backend_is_given_what_the_job_names(job, tick, monkeypatch):
    given = []
    launch = FakeBackend.launch
    monkeypatch.setattr(FakeBackend, "launch", lambda self, r: given.append(r) or launch(self, r))
    tick()
    assert [request.secrets for request in given] == [{"TOKEN": VALUE}]
    assert VALUE not in repr(given)
    assert HandedSecrets.objects.get().attempt == Attempt.objects.get()


def test_a_secret_deleted_before_the_start_ends_the_job_with_what_to_do(
    job, tick, maintainer, project
):
    delete_secret(maintainer, project, "A")
    tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.stop_reason == StopReason.BACKEND
    assert job.message == "Project rl has no secret A any more."
    assert "`mportal secret set A`" in job.hint


def test_values_that_are_too_long_together_end_the_job(fake, tick, maintainer, project):
    names = [f"LONG_{number}" for number in range(3)]
    for name in names:
        set_secret(maintainer, project, name, "x" * 32 * 1024)
    job = make_job(project, spec=make_spec(secrets=names))
    tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.message == "This job's secrets have 98,304 bytes together, more than 65,536."


def test_a_key_that_is_missing_ends_the_job_too(job, tick, settings):
    settings.MPORTAL_SECRET_KEYS = []
    tick()
    assert status_of(job) == JobStatus.FAILED
    assert "MPORTAL_SECRET_KEYS" in job.message
    assert "administrator" in job.hint


def test_an_error_of_the_backend_does_not_show_it(job, tick, monkeypatch, caplog):
    def refuse(self, request):
        raise ValueError(f"bad task: {dict(request.secrets)}")

    monkeypatch.setattr(FakeBackend, "launch", refuse)
    tick()
    assert status_of(job) == JobStatus.FAILED
    assert "bad task: {'TOKEN': '***'}" in job.message
    assert VALUE not in caplog.text
