"""The endpoints about runs: the jobs of one name, and jobs beside one another."""

from __future__ import annotations

from collections.abc import Sequence

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page


class RunCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def history(
        self, project: str, name: str, *, limit: int = 50, cursor: str | None = None
    ) -> wire.page.Page[wire.runs.HistoryRun]:
        """List the jobs of one name as runs, newest first."""
        params = {"name": name, "limit": limit, "cursor": cursor}
        known = {key: value for key, value in params.items() if value is not None}
        answer = self.connection.request("GET", f"/projects/{project}/history", params=known)
        return decode_page(wire.runs.HistoryRun, answer)

    def compare(self, numbers: Sequence[int]) -> wire.runs.Comparison:
        """Compare jobs by their numbers, of any projects; differences are from the first."""
        params = {"jobs": ",".join(str(number) for number in numbers)}
        return decode(
            wire.runs.Comparison, self.connection.request("GET", "/compare", params=params)
        )
