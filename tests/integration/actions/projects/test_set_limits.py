"""`manage.py project_limits`: what an administrator allows a project at most."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from jobs.models import Project
from tests.factories import make_project

pytestmark = pytest.mark.django_db


def said(*words: str) -> list[str]:
    out = StringIO()
    call_command("project_limits", "rl", *words, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture(autouse=True)
def project() -> Project:
    return make_project("rl")


def test_limits_are_set_shown_and_taken_away(project):
    assert said() == ["max-duration: none", "max-idle: none"]
    assert said("--max-duration", "90m", "--max-idle", "30") == [
        "max-duration: 1 h 30 min (project rl)",
        "max-idle: 30 min (project rl)",
    ]
    assert said("--max-idle", "none")[1] == "max-idle: none"
    project.refresh_from_db()
    assert (project.max_duration_s, project.max_idle_minutes) == (5400, None)


def test_the_installations_own_limit_is_shown_where_it_is_smaller(settings):
    settings.MPORTAL_MAX_DURATION_S = 3600
    assert said("--max-duration", "12h")[0] == "max-duration: 1 h (this installation)"


@pytest.mark.parametrize("words", [("--max-duration", "soon"), ("--max-idle", "-3"), ("--x", "1")])
def test_what_is_no_limit_is_refused(words):
    with pytest.raises((CommandError, TypeError)):
        said(*words)
