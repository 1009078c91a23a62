"""An older release does not work on a database that a newer one has upgraded."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from jobs.actions.accounts import releases
from jobs.actions.accounts.releases import about_newer_database, record_release, why_not_to_start
from jobs.management.commands.prepare import bring_up_to_date
from jobs.models import Installation
from monarch_client.version import __version__

pytestmark = pytest.mark.django_db
NAMES_BOTH = (
    rf"newer release of the portal \(9\.1\.0\).*\({re.escape(__version__)}\).*jobs\.9001_more"
)


@pytest.fixture(autouse=True)
def stays_connected(monkeypatch) -> None:
    """Keep the connection of the test's transaction."""
    monkeypatch.setattr(connection, "close", lambda: None)


@pytest.fixture
def upgraded() -> None:
    """Leave rows as a newer release does that was started once."""
    Installation.current()
    Installation.objects.update(release="9.1.0")
    for name in ("9000_other", "9001_more"):
        MigrationRecorder(connection).record_applied("jobs", name)


def test_a_database_of_this_release_is_worked_on():
    assert about_newer_database() == ""
    record_release()
    assert Installation.objects.get().release == __version__


def test_migrations_of_an_app_that_is_not_installed_any_more_are_no_matter():
    MigrationRecorder(connection).record_applied("gone", "0007_last")
    assert about_newer_database() == ""


def test_an_upgraded_database_is_left_alone(upgraded):
    with pytest.raises(CommandError, match=NAMES_BOTH):
        bring_up_to_date()
    assert Installation.objects.get().release == "9.1.0"


def test_no_process_starts_on_an_upgraded_database(upgraded):
    assert re.search(NAMES_BOTH, why_not_to_start())
    with pytest.raises(CommandError, match=NAMES_BOTH):
        call_command("follower")


def test_nothing_is_ready_on_an_upgraded_database(upgraded, client, redis_client):
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert re.search(NAMES_BOTH, answer.json()["database"])
    with pytest.raises(CommandError, match=NAMES_BOTH):
        call_command("ready")


def test_a_database_without_the_release_s_column_is_left_alone(upgraded):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs_installation RENAME COLUMN release TO version")
    assert "(unknown)" in why_not_to_start()


def test_an_unreachable_database_keeps_no_process_from_starting(monkeypatch):
    def fail() -> str:
        raise OperationalError("connection refused")

    monkeypatch.setattr(releases, "about_newer_database", fail)
    assert why_not_to_start() == ""
