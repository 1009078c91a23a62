"""manage.py rotate_secrets: another key, without losing a secret on the way."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from jobs.actions.attempts.hand_secrets import hand_secrets
from jobs.actions.projects.secrets import set_secret
from jobs.statuses import Role
from monarch_portal.embedded.home import Home
from tests.factories import make_actor, make_attempt, make_job, make_project, make_spec

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt():
    project = make_project()
    set_secret(make_actor(project, Role.MAINTAINER), project, "A", "hunter2")
    return make_attempt(make_job(project, spec=make_spec(secrets=["A"])))


@pytest.fixture
def home(settings, mportal_home) -> Home:
    """Create an embedded installation that begins with the keys of these tests."""
    home = Home(mportal_home)
    settings.MPORTAL_EMBEDDED = True
    home.write_sealing_keys(settings.MPORTAL_SECRET_KEYS)
    return home


def test_an_embedded_portal_changes_its_key_in_three_steps(home, attempt, settings, capsys):
    (old,) = home.sealing_keys
    call_command("rotate_secrets", new_key=True)
    new, kept = home.sealing_keys
    assert kept == old
    settings.MPORTAL_SECRET_KEYS = home.sealing_keys  # what a restart does
    call_command("rotate_secrets", drop_old_keys=True)
    assert "Sealed with the newest key: 1." in capsys.readouterr().out
    assert home.sealing_keys == [new]
    settings.MPORTAL_SECRET_KEYS = home.sealing_keys
    assert hand_secrets(attempt.job, attempt) == {"A": "hunter2"}
    assert home.sealing_keys_file.stat().st_mode & 0o077 == 0


def test_old_keys_are_kept_while_something_opens_with_no_key(home, attempt, settings):
    call_command("rotate_secrets", new_key=True)
    settings.MPORTAL_SECRET_KEYS = home.sealing_keys[:1]
    with pytest.raises(CommandError, match="opens this secret"):
        call_command("rotate_secrets", drop_old_keys=True)
    assert len(home.sealing_keys) == 2


def test_elsewhere_a_key_is_printed_for_the_caller_to_keep(settings, attempt, capsys):
    settings.MPORTAL_EMBEDDED = False
    call_command("rotate_secrets", new_key=True)
    key = capsys.readouterr().out.strip()
    settings.MPORTAL_SECRET_KEYS = [key, *settings.MPORTAL_SECRET_KEYS]
    call_command("rotate_secrets")
    settings.MPORTAL_SECRET_KEYS = [key]
    assert hand_secrets(attempt.job, attempt) == {"A": "hunter2"}
