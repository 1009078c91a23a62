"""The jobs about which a browser may notify: the watched ones and the own, as far as visible."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.permissions import Actor
from jobs.readers.job_notices import job_notices
from jobs.statuses import JobStatus, Role
from tests.factories import make_job, make_member, make_project

pytestmark = pytest.mark.django_db


def test_watched_jobs_and_own_ones_that_are_not_long_over_but_none_of_other_projects():
    project = make_project("rl")
    ada = make_member(project, Role.MEMBER, username="ada")
    foreign = make_job(make_project("other"))
    watched = make_job(project, status=JobStatus.RUNNING)
    make_job(project)
    own = make_job(project, submitted_by=ada)
    now = timezone.now()
    ended = make_job(project, submitted_by=ada, status=JobStatus.FAILED, ended_at=now)
    long_ago = now - timedelta(hours=1)
    make_job(project, submitted_by=ada, status=JobStatus.FAILED, ended_at=long_ago)

    def phases(*, own: bool) -> dict[int, str]:
        found = job_notices(Actor(user=ada), [watched.pk, foreign.pk], own=own)
        return {each.id: each.phase for each in found}

    assert phases(own=False) == {watched.pk: "running"}
    assert phases(own=True) == {watched.pk: "running", own.pk: "waiting", ended.pk: "ended"}


def test_thousands_of_queued_jobs_hide_neither_watched_ones_nor_those_that_run(monkeypatch):
    monkeypatch.setattr("jobs.readers.job_notices.MOST_OWN", 2)
    monkeypatch.setattr("jobs.readers.job_notices.MOST_WATCHED", 1)
    project = make_project("rl")
    ada = make_member(project, Role.MEMBER, username="ada")
    watched = make_job(project)
    runs = make_job(project, submitted_by=ada, status=JobStatus.RUNNING)
    queued = [make_job(project, submitted_by=ada) for _ in range(4)]
    found = {each.id for each in job_notices(Actor(user=ada), [watched.pk], own=True)}
    assert found == {watched.pk, runs.pk, queued[-1].pk}
