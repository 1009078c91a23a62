"""Following jobs to their end: the log live, or just the waiting. Ctrl-C leaves, never kills."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from monarch_client.cli.exit_codes import DETACHED, TIMED_OUT, exit_code_of
from monarch_client.cli.log_printer import LogPrinter
from monarch_client.cli.progress import Progress
from monarch_client.errors import UnreachableError
from monarch_client.rest.client import PortalClient
from monarch_client.rest.stream import Changed, Disconnected, Follower, FollowEvent, NewLines
from monarch_client.wire.jobs import Job

WAIT_POLL_S = 1.0


class JobView:
    """One job on the terminal, from now to its end."""

    def __init__(self, client: PortalClient, job: Job) -> None:
        self._client = client
        self._job = job
        self._progress = Progress()
        self._log = LogPrinter(many_ranks=job.num_nodes > 1)
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


def wait(client: PortalClient, project: str, job_id: int, timeout_s: float | None) -> int:
    """Wait silently until the job has ended; return the exit code for the command.

    Then, or when the time is up, say how the job is. A portal that goes away meanwhile is waited
    for as well; one that cannot be reached at all is an error.
    """
    give_up_at = None if timeout_s is None else time.monotonic() + timeout_s
    progress = Progress()
    job = client.job(project, job_id)
    try:
        while not job.is_final:
            if give_up_at is not None and time.monotonic() >= give_up_at:
                progress.goes_on(job)
                return TIMED_OUT
            client.connection.sleep(WAIT_POLL_S)
            # That it does not answer was reported by then.
            with suppress(UnreachableError):
                job = client.job(project, job_id)
    except KeyboardInterrupt:
        progress.detached(job)
        return DETACHED
    progress.ended(job)
    return exit_code_of(job)
