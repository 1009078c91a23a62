"""SkyPilot's API server, asked in the portal's terms: no call waits, errors are the portal's.

One process of ours shares one child that speaks to SkyPilot (`monarch_client.skypilot.caller`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.backends.skypilot.asking import Sending
from jobs.backends.skypilot.views import NO_NODES, Row, error_of
from jobs.errors import StillLookingError
from monarch_client.skypilot.caller import SkyCaller
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError

# How long a step waits for an answer before it lets others have its thread. Most come in 0.2 s.
PATIENCE_S = 3.0
# Looks of several processes and steps within this time share one answer.
FRESH_S = 0.3
# Asking the nodes takes SkyPilot 4 to 15 seconds on Slurm.
FRESH_JOBS_S = 10.0


class SkyPilotCalls:
    """StillLookingError: the call goes on, the same one picks its answer up later."""

    def __init__(self, caller: SkyCaller) -> None:
        self._caller = caller

    def warm_up(self) -> None:
        """Have SkyPilot imported before the first question. Returns at once."""
        self._caller.warm_up()

    def requests_of(self, cluster_name: str) -> list[Row]:
        """List the requests about a cluster that SkyPilot remembers, newest first."""
        rows = self._ask("requests_of", fresh_s=FRESH_S, cluster_name=cluster_name)
        return list(rows)

    def row(self, cluster_name: str, *, is_new: bool = False) -> Row | None:
        """Return the cluster's row; None where SkyPilot has none. `is_new`: never a cached one."""
        fresh_s = 0.0 if is_new else FRESH_S
        rows = self._ask("status", fresh_s=fresh_s, names=[cluster_name])
        return next((row for row in rows if row["name"] == cluster_name), None)

    def rows(self) -> list[Row]:
        """List all clusters, also those that others made."""
        return list(self._ask("status", names=None))

    def jobs(self, cluster_name: str, name: str) -> list[Row] | None:
        """List the jobs of that name, newest first. The request goes to the nodes themselves.

        None: the nodes are not up, whatever the cluster's row says.
        """
        try:
            rows = self._ask_raw("jobs", {"cluster_name": cluster_name}, FRESH_JOBS_S)
        except SkyPilotError as error:
            if error.kind in NO_NODES:
                return None
            raise error_of(error) from error
        named = [row for row in rows if row["name"] == name]
        return sorted(named, key=lambda row: -int(row["job_id"]))

    def failure_of(self, request_id: str) -> SkyPilotError | None:
        """Return why an ended request failed; None if it did not, or is not known any more."""
        try:
            self._ask_raw("result", {"request_id": request_id}, FRESH_S)
        except SkyPilotError as error:
            return None if error.kind == "not_found" else error
        return None

    def start(self, verb: str, **args: Any) -> str:
        """Start the request `verb` at SkyPilot's server and return its number."""
        return str(self._ask(verb, **args))

    def send(self, sending: Sending, verb: str, args: dict[str, Any]) -> None:
        """Hand an attempt over, in the background."""
        sending.begin(self._caller, verb, args)

    def value(self, name: str, *, fresh_s: float = FRESH_S, **args: Any) -> Any:
        """Return the answer of any other call."""
        return self._ask(name, fresh_s=fresh_s, **args)

    @contextmanager
    def stream(self, name: str, **args: Any) -> Iterator[Any]:
        """Yield the results of a call as they arrive."""
        with self._caller.stream(name, args) as stream:
            yield stream

    def _ask(self, name: str, *, fresh_s: float = 0.0, **args: Any) -> Any:
        try:
            return self._ask_raw(name, args, fresh_s)
        except SkyPilotError as error:
            raise error_of(error) from error

    def _ask_raw(self, name: str, args: dict[str, Any], fresh_s: float) -> Any:
        try:
            return self._caller.call(name, args, PATIENCE_S, fresh_s=fresh_s)
        except StillBusyError as error:
            raise StillLookingError(str(error)) from error
