"""The cluster of a SkyPilotJob, at the user's own SkyPilot: brought up, asked, taken down."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Mapping
from typing import Any

from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from monarch_client.skypilot.job_errors import (
    ClusterError,
    ClusterExistsError,
    NotTakenDownError,
    WorkersError,
)
from monarch_client.skypilot.job_log import JobLog, Worker
from monarch_client.skypilot.job_spec import JobSpec

log = logging.getLogger(__name__)

# SkyPilot gives a server on this machine a minute to start, after its own import.
REACH_S = 90.0
# A server that hangs is given up.
ANSWER_S = 120.0
DOWN_S = 180.0
LOOK_S = 1.0
AGAIN_S = 5.0
OPEN = frozenset({"PENDING", "RUNNING"})
ALIVE = frozenset({"INIT", "PENDING", "SETTING_UP", "RUNNING"})
# The way to the server broke; the same may work a moment later.
PASSING = frozenset({"server_away", "interrupted"})


class JobCluster:
    """One cluster by its name. `close` ends the child that asks; the cluster stays."""

    def __init__(self, name: str, spec: JobSpec) -> None:
        self.name = name
        self._spec = spec
        self._caller = SkyCaller(CallerOptions.of_user(spec.sky_python))
        self._server = ""

    def connect(self) -> None:
        """Return once SkyPilot's server answers. ClusterError: it does not, and which one that is.

        A server on this machine is started where the user's configuration names no other.
        """
        log.info("cluster %s: asking SkyPilot's server, for at most %g s", self.name, REACH_S)
        self._server = str(self._ask("address", REACH_S))

    def refuse_if_exists(self) -> None:
        """Raise ClusterExistsError if it exists: the job would run on it and end it."""
        row = self.row()
        if row is not None:
            raise ClusterExistsError(self.name, str(row["status"]), str(row["user"]))

    def row(self) -> dict[str, Any] | None:
        """Return SkyPilot's row of it; None if there is none."""
        rows = self._ask("status", names=[self.name])
        return next((dict(each) for each in rows if each["name"] == self.name), None)

    def launch(self, task: Mapping[str, Any]) -> int:
        """Bring it up with this task on it; the task's number. ClusterError: why not."""
        minutes, is_down = self._spec.backstop
        options: dict[str, Any] = {"cluster_name": self.name, "task": dict(task)}
        if self._spec.retry_until_up:
            options["retry_until_up"] = True
        log.info("cluster %s: asking SkyPilot for %d machines", self.name, self._spec.num_nodes)
        try:
            return self._launched({**options, "idle_minutes": minutes, "down": is_down})
        except ClusterError as error:
            if error.kind != "not_supported" or "autostop" not in str(error).lower():
                raise
        log.warning("cluster %s: its cloud cannot take it down when idle: do so", self.name)
        return self._launched(options)

    def wait_for_workers(self, job_id: int) -> list[Worker]:
        """Return all workers in rank order once they listen. WorkersError once they never will."""
        deadline = time.monotonic() + self._spec.ready_timeout_s
        seen = JobLog()
        while time.monotonic() < deadline:
            # From its beginning each time: it is short until the workers are there.
            seen = JobLog()
            is_read = self._read(job_id, seen, deadline)
            if len(seen.workers) == self._spec.num_nodes:
                return [seen.workers[rank] for rank in sorted(seen.workers)]
            if is_read and not self.has_job(job_id):
                raise self._failure(seen)
            time.sleep(LOOK_S)
        limit = self._spec.ready_timeout_s
        message = f"Not all workers of {self.name} listened within {limit:g} s."
        raise WorkersError(message, log=seen.lines)

    def has_job(self, job_id: int) -> bool:
        """Whether the job that keeps the workers runs."""
        try:
            rows = self._ask("jobs", cluster_name=self.name)
        except ClusterError as error:
            if error.kind in {"not_found", "not_up"}:
                return False
            raise
        return any(row["job_id"] == job_id and row["status"] in ALIVE for row in rows)

    def ssh_access(self) -> dict[str, Any]:
        """Return how ssh reaches it: see `launch.ssh_access`."""
        return dict(self._ask("ssh_access", cluster_name=self.name))

    def ask_for_end(self) -> str:
        """Request its termination, whatever SkyPilot does with it now.

        Return the id of the request, "" if the cluster no longer exists. NotTakenDownError: the
        request did not reach SkyPilot.
        """
        # A call that sends files may be under way; its process ends, so that nothing starts later.
        self._caller.close()
        try:
            return self._ask_for_end()
        except ClusterError as error:
            if error.kind not in PASSING:
                raise NotTakenDownError(self.name, str(error)) from error
        time.sleep(AGAIN_S)
        try:
            return self._ask_for_end()
        except ClusterError as error:
            raise NotTakenDownError(self.name, str(error)) from error

    def wait_for_end(self, request: str, patience_s: float = DOWN_S) -> None:
        """Wait until it is terminated. NotTakenDownError: it is not."""
        if not request:
            return
        try:
            self._result(request, patience_s)
        except ClusterError as error:
            if error.kind != "not_found":
                raise NotTakenDownError(self.name, str(error)) from error
        except StillBusyError:
            raise NotTakenDownError(self.name, f"not gone after {patience_s:g} s.") from None

    def close(self) -> None:
        """End the child that asks SkyPilot."""
        self._caller.close()

    def _launched(self, options: Mapping[str, Any]) -> int:
        request = self._ask("launch", **options)
        found = self._result(str(request), None)
        if found is None or found.get("job_id") is None:
            message = "SkyPilot started no job."
            raise ClusterError(self.name, SkyPilotError("other", message))
        return int(found["job_id"])

    def _ask_for_end(self) -> str:
        for row in self._ask("requests_of", cluster_name=self.name):
            if row["status"] in OPEN and row["name"] in {"launch", "exec"}:
                # Cancelling alone would leave the machines.
                cancelled = self._ask("cancel_request", request_id=row["request_id"])
                self._result(str(cancelled), ANSWER_S)
        if self.row() is None:
            return ""
        try:
            return str(self._ask("down", cluster_name=self.name))
        except ClusterError as error:
            if error.kind == "not_found":
                return ""
            raise

    def _read(self, job_id: int, seen: JobLog, deadline: float) -> bool:
        """Follow the log until the workers are there, or to its end; whether it could be read."""
        args = {"cluster_name": self.name, "job_id": job_id}
        try:
            with self._caller.stream("read_log", args) as stream:
                while len(seen.workers) < self._spec.num_nodes and time.monotonic() < deadline:
                    try:
                        piece = stream.get(LOOK_S)
                    except queue.Empty:
                        continue
                    if piece is None:
                        return True
                    stage = seen.stage
                    seen.feed(piece)
                    if seen.stage != stage:
                        log.info("cluster %s: %s", self.name, seen.stage)
                    if seen.ending is not None:
                        raise self._failure(seen)
        except SkyPilotError as error:
            if error.kind not in PASSING | {"not_up"}:
                raise ClusterError(self.name, error) from error
            return error.kind == "not_up"
        return True

    def _failure(self, seen: JobLog) -> WorkersError:
        if seen.ending is None:
            message = f"The job that starts the workers of {self.name} ended."
            return WorkersError(message, log=seen.lines)
        return WorkersError(seen.ending.message, seen.ending.reason, seen.lines)

    def _result(self, request: str, patience_s: float | None) -> Any:
        """Return the result of a request; wait for `patience_s` seconds, or as long as it takes."""
        end = None if patience_s is None else time.monotonic() + patience_s
        while True:
            try:
                return self._call("result", ANSWER_S, request_id=request)
            except StillBusyError:  # noqa: PERF203 - each takes seconds
                if end is not None and time.monotonic() > end:
                    raise

    def _ask(self, name: str, patience_s: float = ANSWER_S, **args: Any) -> Any:
        """Return the answer of a call that is answered soon. ClusterError: also where it is not."""
        try:
            return self._call(name, patience_s, **args)
        except StillBusyError as error:
            message = (
                f"SkyPilot's server{self._server and f' at {self._server}'} did not answer "
                f"`{name}` within {patience_s:g} s. Check it with `sky api info`; messages are in "
                f"{self._caller.options.log}."
            )
            raise ClusterError(self.name, SkyPilotError("server_away", message)) from error

    def _call(self, name: str, patience_s: float, **args: Any) -> Any:
        try:
            return self._caller.call(name, args, patience_s)
        except SkyPilotError as error:
            raise ClusterError(self.name, error) from error
