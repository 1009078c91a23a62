"""Record the release that prepared the database, and check that this one can use it."""

from __future__ import annotations

import logging
from functools import cache

from django.db import DatabaseError, ProgrammingError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from jobs.ground.outages import is_database_away
from jobs.models import Installation
from monarch_client.version import __version__

log = logging.getLogger(__name__)


def record_release() -> None:
    """Store the version of this release, which has brought the database up to date."""
    Installation.current()
    Installation.objects.exclude(release=__version__).update(release=__version__)


def about_newer_database() -> str:
    """Return why this release cannot use a database that a newer one changed; "" if it can."""
    unknown = sorted(MigrationRecorder(connection).applied_migrations().keys() - _known())
    # Migrations of apps that are no longer installed do not matter.
    unknown = [(app, name) for app, name in unknown if app in _apps()]
    if not unknown:
        return ""
    app, name = unknown[-1]
    return (
        f"The database was upgraded by a newer release of the portal ({_release_of_database()}); "
        f"this release ({__version__}) does not know its migration {app}.{name}. Start the newer "
        "release, or restore a backup of the database from before the upgrade."
    )


def why_not_to_start() -> str:
    """Return why a portal process must not start on this database; "" if it may.

    An unreachable database is no reason: requests and steps wait for it.
    """
    try:
        return about_newer_database()
    except DatabaseError as error:
        if not is_database_away(error):
            raise
        log.warning("database away: %s", error, extra={"action": "database_away"})
        return ""
    finally:
        connection.close()


def _release_of_database() -> str:
    try:
        return Installation.objects.values_list("release", flat=True).first() or "unknown"
    except ProgrammingError:
        return "unknown"  # the newer release keeps it elsewhere


@cache
def _known() -> frozenset[tuple[str, str]]:
    """Return the migrations of this release, and those that they replace."""
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    replaced = (pair for each in migrations.values() for pair in each.replaces)
    return frozenset([*migrations, *replaced])


@cache
def _apps() -> frozenset[str]:
    return frozenset(app for app, _ in _known())
