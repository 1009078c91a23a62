"""Brings the database up to date and makes the first user. Safe to run anywhere, any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from jobs.actions.accounts.bootstrap import bootstrap
from jobs.actions.accounts.releases import about_newer_database, record_release
from jobs.actions.accounts.tokens import create_token
from jobs.ground import clock
from jobs.models import ApiToken, User
from jobs.models.api_token import token_digest
from jobs.permissions import Actor

# Any number that nothing else in this database locks.
MIGRATION_LOCK = 0x6D706F72


class Command(BaseCommand):
    """`manage.py prepare`."""

    help = "Migrate the database (one process at a time) and make the first user and project."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Migrate, make the first user, and keep a token for the embedded portal's CLI."""
        _migrate_alone()
        record_release()
        admin = bootstrap().user
        if settings.MPORTAL_EMBEDDED:
            _keep_token(admin, settings.MPORTAL_HOME / "admin-token")


def _migrate_alone() -> None:
    """Migrate under a lock: of several starting at once the first does it, the others wait."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")
        # A migration may compute for long between two statements.
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
    try:
        bring_up_to_date()
    finally:
        # Also ends the session's time limits.
        connection.close()


def bring_up_to_date() -> None:
    """Apply the migrations that are missing, and record those that replace applied ones.

    CommandError: the database is a newer release's, or has some of the replaced migrations, but
    not all.
    """
    if why := about_newer_database():
        raise CommandError(why)
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    # Django leaves out what replaces migrations of which only some were applied.
    if not executor.loader.replacements.keys() <= graph.nodes.keys():
        raise CommandError(
            "This database is older than this version can upgrade. Start the portal once in a "
            "version that has migration jobs.0025_count_gpus_again, then in this one."
        )
    if executor.migration_plan(graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=1)
    executor.check_replacements()


def _keep_token(admin: User, file: Path) -> None:
    """Have a usable token of the first user in `file`, which its owner alone may read."""
    if file.exists():
        digest = token_digest(file.read_text().strip())
        if ApiToken.objects.usable(clock.now()).filter(digest=digest).exists():
            return
    _, secret = create_token(Actor(admin), "this machine's command line")
    unfinished = file.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    unfinished.write_text(secret)
    unfinished.rename(file)
