"""Follow a job to its end with its log, live. Ctrl-C leaves, never kills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from monarch_client.cli.exit_codes import DETACHED, exit_code_of
from monarch_client.cli.log_printer import LogPrinter
from monarch_client.cli.progress import Progress
from monarch_client.rest.stream import Changed, Disconnected, Follower, FollowEvent, NewLines

if TYPE_CHECKING:
    from monarch_client import rest
    from monarch_client.wire.jobs import Job


class JobView:
    """One job on the terminal, from now to its end."""

    def __init__(self, client: rest.PortalClient, job: Job, *, shows_own: bool = False) -> None:
        self._client = client
        self._job = job
        self._progress = Progress()
        self._log = LogPrinter(many_ranks=job.num_nodes > 1, shows_own=shows_own)
        self._is_away = False

    def follow(self, tail: int | None = None, choice: Mapping[str, Any] | None = None) -> int:
        """Show all that happens until the job has ended; the exit code for the command."""
        follower = Follower(self._client, self._job.project, self._job.id, tail, choice or {})
        self._look()
        try:
            for event in follower.events():
                self._show(event)
        except KeyboardInterrupt:
            self._progress.detached(self._job)
            return DETACHED
        self._log.finish()
        self._log.report_left_out(self._job.id)
        self._look()
        self._progress.ended(self._job)
        return exit_code_of(self._job)

    def _show(self, event: FollowEvent) -> None:
        if isinstance(event, Disconnected):
            # Once for each time the portal is away, however often it is tried.
            if not self._is_away:
                self._progress.disconnected(event.reason)
            self._is_away = True
            return
        if self._is_away:
            self._progress.connected_again()
            self._is_away = False
        if isinstance(event, NewLines):
            self._log.show(event.lines)
        elif isinstance(event, Changed):
            self._look()

    def _look(self) -> None:
        self._job = self._client.job(self._job.project, self._job.id)
        attempts = self._client.attempts(self._job.project, self._job.id, workers="none")
        self._progress.show(self._job, attempts)
