"""The jobs that a search in all projects finds, and their order."""

from __future__ import annotations

import pytest

from jobs.models import Membership
from jobs.permissions import Actor
from jobs.readers.found_jobs import MOST_FOUND, found_jobs
from jobs.statuses import Role
from tests.factories import make_job, make_member, make_project

pytestmark = pytest.mark.django_db


def test_the_number_comes_first_then_the_project_of_the_page_then_others_but_none_invisible():
    project, other = make_project("rl"), make_project("nlp")
    ada = make_member(project, Role.VIEWER, username="ada")
    Membership.objects.create(project=other, user=ada, role=Role.VIEWER)
    wanted = make_job(other, name="eval")
    text = str(wanted.pk)
    elsewhere = make_job(other, name=f"sft-{text}")
    here = [make_job(project, name=f"sft-{text}-{i}").pk for i in range(MOST_FOUND + 1)]
    make_job(make_project("secret"), name=f"sft-{text}")
    found = [each.id for each in found_jobs(Actor(user=ada), text, project)]
    assert found == [wanted.pk, *here[:0:-1], elsewhere.pk]
    everywhere = [each.id for each in found_jobs(Actor(user=ada), text, None)]
    assert everywhere == [wanted.pk, *here[:0:-1]]
