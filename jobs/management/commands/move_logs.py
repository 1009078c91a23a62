"""`manage.py move_logs`: sealed logs from files to S3, or back, while the portal runs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.actions.ingest.claim_blobs import claim_blobs
from jobs.audit.record import record
from jobs.audit.targets import Target
from jobs.errors import LogStoreAwayError
from jobs.logs import moving, stores
from jobs.logs.moving import CopyDiffersError, Moved
from jobs.statuses import LogStore

_TOLD_EVERY = 100
_AGAIN = "Run the same command again: it goes on where it stopped."


class Command(BaseCommand):
    """`manage.py move_logs --to s3|files`."""

    help = "Move all sealed logs to S3 or to files. The portal may run; a crash loses nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the store to move to."""
        parser.add_argument("--to", required=True, choices=list(LogStore.values))

    def handle(self, *_args: Any, **options: Any) -> None:
        """Move the chunks that are in the other store; exit code 1 if some are left there."""
        to = options["to"]
        if to not in stores.configured():
            raise CommandError("There is no S3 to move to: set MPORTAL_S3, see the settings.")
        self.stdout.write(f"{moving.waiting(to):,} chunks are in the other store.")
        done = Moved()
        try:
            try:
                for done in moving.move_all(to):
                    self._report(done, to)
            finally:
                _record(done, to)
            left_over = self._sweep()
        except LogStoreAwayError as error:
            raise CommandError(f"{error.message} {_moved(done)} {_AGAIN}") from error
        except (CopyDiffersError, OSError) as error:
            raise CommandError(f"{error} {_moved(done)} {_AGAIN}") from error
        self.stdout.write(f"{_moved(done)} Left-overs of earlier moves removed: {left_over}.")
        self._warn(done, to)

    def _report(self, done: Moved, to: str) -> None:
        if done.chunks and done.chunks % _TOLD_EVERY == 0:
            self.stdout.write(f"{_moved(done)} {moving.waiting(to):,} to go.")

    def _sweep(self) -> int:
        if not all(claim_blobs(store) for store in stores.configured()):
            self.stdout.write("Nothing is swept up; the portal's log says why.")
            return 0
        return moving.sweep_all()

    def _warn(self, done: Moved, to: str) -> None:
        if to != settings.MPORTAL_LOG_STORE:
            self.stdout.write(
                f"New chunks still go to {settings.MPORTAL_LOG_STORE}: set MPORTAL_LOG_STORE={to}, "
                "restart the portal and run this once more."
            )
        if done.missing:
            raise CommandError(f"Of {done.missing} chunks the blob is missing; they stay as is.")


def _record(done: Moved, to: str) -> None:
    """Record what this run moved, also if it ended early."""
    if done.chunks:
        after = {"store": to, "chunks": done.chunks}
        record(None, "move_logs", Target("logs", "all logs"), after=after)


def _moved(done: Moved) -> str:
    return f"{done.chunks:,} chunks moved, {done.stored_bytes / 1024**2:,.1f} MiB."
