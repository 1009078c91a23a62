"""The service `sessions`: the head node reports which sessions are open, and of which kinds.

A laptop's certificate outlives its session. So a node serves a laptop only while the head reports
its session; streams of a session that is no longer reported end. The head sends a line, at least
every BEAT_S: {"number": N, "sessions": {"7": "ssh"}}, and the node answers {"number": N}. Without
the head's stream no session is open.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from monarch_client.runner.node_streams.opening import RefusedError, read_line, send_line

if TYPE_CHECKING:
    from typing import Any

    from monarch_client.runner.node_streams.opening import NodeStream

BEAT_S = 10.0
SILENCE_S = 30.0


class OpenSessions:
    """The sessions that the head reports as open, and the tasks that serve their streams.

    `kinds`: those of the sessions that are open from the begin, without a report.
    """

    def __init__(self, kinds: dict[int, str] | None = None) -> None:
        self._kinds = kinds or {}
        self._tasks: dict[asyncio.Task[Any], int] = {}
        # The newest one counts: a head that was lost may leave an older one.
        self._reports: NodeStream | None = None

    async def serve(self, stream: NodeStream) -> None:
        """Take the reports of the head until its stream ends, or is silent for too long."""
        try:
            self._reports = stream
            await stream.accept()
            while True:
                report = await asyncio.wait_for(read_line(stream.reader), SILENCE_S)
                if self._reports is not stream:
                    return
                self._replace(_kinds_in(report))
                await send_line(stream.writer, {"number": report.get("number")})
        finally:
            if self._reports is stream:
                self._replace({})

    def kind_of(self, session: int) -> str:
        """Return the kind of a session; "" if it is not open."""
        return self._kinds.get(session, "")

    def end_with(self, session: int, task: asyncio.Task[Any] | None) -> None:
        """Have a task cancelled when the session ends. RefusedError: it has ended already."""
        if session not in self._kinds or task is None:
            raise RefusedError(f"Session {session} is not open.")
        self._tasks[task] = session
        task.add_done_callback(self._tasks.pop)

    def _replace(self, kinds: dict[int, str]) -> None:
        self._kinds = kinds
        for task, session in list(self._tasks.items()):
            if session not in kinds:
                task.cancel()


def _kinds_in(report: dict[str, Any]) -> dict[int, str]:
    try:
        return {int(session): str(kind) for session, kind in report["sessions"].items()}
    except (LookupError, ValueError, AttributeError) as error:
        raise RefusedError("The report of open sessions is malformed.") from error
