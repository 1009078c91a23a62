"""Machines of any cloud, Kubernetes or Slurm, through SkyPilot's API server.

This file defines the order of the steps; the modules beside it carry them out. Nothing is kept but
staged folders: a cluster is found by its name, an attempt's job by the attempt's id.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, Literal

from jobs.backends.base import (
    ClusterPhase,
    ClusterView,
    LaunchRequest,
    Leftovers,
)
from jobs.backends.ended_names import EndedNames
from jobs.backends.skypilot.calls import SkyPilotCalls
from jobs.backends.skypilot.keeping import Keeping
from jobs.backends.skypilot.log import frames_of
from jobs.backends.skypilot.staging import Staging
from jobs.backends.skypilot.task import job_name_of, task_for
from jobs.backends.skypilot.views import (
    ENDS,
    NO_NODES,
    STARTS,
    Row,
    active,
    error_of,
    failed,
    job_lives,
    under_way,
    verb_of,
    view_of,
    without_nodes,
)
from jobs.errors import (
    BackendError,
    BackendUnavailableError,
    NoCapacityError,
    NotYetGoneError,
    StillLookingError,
)
from monarch_client.crash_points import reach
from monarch_client.skypilot.errors import SkyPilotError

log = logging.getLogger(__name__)

# Answers about the jobs of a cluster may be so old.
RECENT_S = 60.0
# The answer to a runner's next message stops it within 5 seconds; SkyPilot's own cancel, which cuts
# it off after a short while, is for those that send none.
CANCEL_AFTER_S = 10.0
# How long a log may take that does not end.
LEFTOVERS_S = 20.0


class SkyPilotBackend(Keeping):
    """A backend that sends requests to SkyPilot's server, which does all lasting work."""

    name = "skypilot"
    carrier: Literal["push", "pull", "either"] = "either"
    stop_patience_s = 60.0

    def __init__(self, calls: SkyPilotCalls, staging: Staging, ended: EndedNames) -> None:
        super().__init__(calls)
        self._staging = staging
        self._ended = ended
        if staging.only_prints:
            # Known from the start: no caller waits for an answer that cannot arrive.
            self.carrier = "pull"
        self._stops: dict[tuple[str, int | None], float] = {}

    def launch(self, request: LaunchRequest) -> None:
        """Request the cluster with the attempt on it, or the attempt on a cluster that is up.

        A launch of a name that exists repairs or wakes it; one that was torn down is refused.
        """
        name = request.cluster_name
        if name in self._ended:
            raise BackendError(f"{name} was torn down and does not start again.")
        if self._is_known(request):
            return
        row = self._calls.row(name)
        is_up = row is not None and row["status"] == "UP"
        if active(self._calls.requests_of(name), STARTS) is not None:
            raise StillLookingError(f"{name} is being started for another attempt.")
        task = task_for(request, str(self._staging.stage(request)))
        reach("launch.staged")
        args: dict[str, Any] = {"cluster_name": name, "task": task}
        verb = "execute" if is_up and not self._was_not_up(request) else "launch"
        if verb == "launch":
            minutes = request.autostop_minutes
            args.update(idle_minutes=minutes, down=minutes is not None)
        self._calls.send(self._staging.sending(name, request.attempt_id), verb, args)

    def observe(
        self, cluster_name: str, *, attempt_id: int | None = None, closely: bool = True
    ) -> ClusterView:
        """Report the state by requests under way, else the cluster's row, else the job on it."""
        if attempt_id is not None and self._is_being_sent(cluster_name, attempt_id):
            return ClusterView(ClusterPhase.STARTING)
        requests = self._calls.requests_of(cluster_name)
        start_row = self._start_row_of(cluster_name, attempt_id, requests)
        # A launch that has just ended may be newer than a row that another caller read.
        is_done = start_row is not None and start_row["status"] == "SUCCEEDED"
        row = self._calls.row(cluster_name, is_new=is_done)
        view = under_way(requests, row) or self._refused(cluster_name, attempt_id, row)
        if view is None and start_row is not None and not is_done:
            view = self._came_to_nothing(start_row, row)
        if view is not None:
            return view
        is_lost = is_done and attempt_id is not None
        if row is None or row["status"] not in {"UP", "STOPPED"}:
            return without_nodes(row, is_lost=is_lost)
        if row["status"] == "STOPPED":
            return view_of(row, ClusterPhase.STOPPED)
        if start_row is not None and not closely:
            return view_of(row, ClusterPhase.UP)
        is_recent = is_done and _finished_within(start_row, RECENT_S)
        view = self._by_its_job(cluster_name, attempt_id, row, is_recent=is_recent)
        return view or without_nodes(row, is_lost=is_lost)

    def stop(self, cluster_name: str, grace_s: float, *, attempt_id: int | None = None) -> None:
        """Cancel the attempt's job, unless the answer to a frame may still reach its runner."""
        key = (cluster_name, attempt_id)
        first = self._stops.setdefault(key, time.monotonic())
        hears_us = grace_s > 0 and self.carrier != "pull"
        if hears_us and time.monotonic() - first < CANCEL_AFTER_S:
            return
        assert attempt_id is not None  # noqa: S101 - a cluster here may have had several
        for job in self._calls.jobs(cluster_name, job_name_of(attempt_id)) or ():
            if job_lives(job):
                self._calls.start("cancel_job", cluster_name=cluster_name, job_id=job["job_id"])

    def leftovers(self, cluster_name: str, *, attempt_id: int | None = None) -> Leftovers:
        """Return the frames in a readable log: all, or the verdict if the runner pushed.

        Frames that were neither pushed nor printed are lost with their node.
        """
        assert attempt_id is not None  # noqa: S101 - a cluster here may have had several
        row = self._calls.row(cluster_name)
        if row is None or row["status"] != "UP":
            return Leftovers()
        if not self._calls.jobs(cluster_name, job_name_of(attempt_id)):
            return Leftovers()
        try:
            frames = self._printed(cluster_name, attempt_id)
        except BackendUnavailableError:
            raise
        except BackendError as error:
            log.info("no log to read: %s", error, extra={"cluster": cluster_name})
            return Leftovers()
        return Leftovers(frames)

    def _printed(self, cluster_name: str, attempt_id: int) -> list[bytes]:
        """Collect the log's frames, for LEFTOVERS_S at most: a running job's log never ends."""
        until = time.monotonic() + LEFTOVERS_S
        found = []
        with closing(frames_of(self._calls, cluster_name, attempt_id, {})) as frames:
            for frame in frames:
                if frame:
                    found.append(frame)
                if time.monotonic() > until:
                    break
        return found

    def frames(
        self, cluster_name: str, after: Mapping[int, int], *, attempt_id: int | None = None
    ) -> Iterable[bytes]:
        """Yield the frames that the attempt's runner printed, from SkyPilot's log."""
        assert attempt_id is not None  # noqa: S101 - a cluster here may have had several
        return frames_of(self._calls, cluster_name, attempt_id, after)

    def tear_down(self, cluster_name: str) -> None:
        """Cancel what still starts it, then take it down, and look until SkyPilot has no row."""
        # First of all: a launch that comes later finds it.
        self._ended.add(cluster_name)
        requests = self._calls.requests_of(cluster_name)
        if (start := active(requests, STARTS)) is not None:
            # SkyPilot leaves the nodes of a cancelled launch running: the take-down follows.
            self._calls.start("cancel_request", request_id=start["request_id"])
            raise NotYetGoneError("Its launch is being cancelled; then it is taken down.")
        if active(requests, ENDS) is not None:
            raise NotYetGoneError("It is being terminated.")
        if self._calls.row(cluster_name) is None:
            if self._staging.may_arrive(cluster_name):
                raise NotYetGoneError("It is on its way to SkyPilot; then it is taken down.")
            self._forget(cluster_name)
            return
        if why := self._failed_just_now(requests):
            raise NotYetGoneError(f"Termination failed and is requested again: {why}")
        self._calls.start("down", cluster_name=cluster_name)
        raise NotYetGoneError("Its termination was requested.")

    def _is_being_sent(self, cluster_name: str, attempt_id: int) -> bool:
        sending = self._staging.sending(cluster_name, attempt_id)
        return sending.is_under_way or sending.was_just_taken

    def _is_known(self, request: LaunchRequest) -> bool:
        """Whether the attempt was requested and SkyPilot knows of it: it is never started twice.

        BackendError: why its launch came to nothing.
        """
        name, attempt_id = request.cluster_name, request.attempt_id
        if self._staging.staged_at(name, attempt_id) is None:
            return False
        view = self.observe(name, attempt_id=attempt_id)
        if view.failure is not None:
            raise view.failure
        return view.phase not in {ClusterPhase.GONE, ClusterPhase.STOPPED}

    def _refused(
        self, cluster_name: str, attempt_id: int | None, row: Row | None
    ) -> ClusterView | None:
        if attempt_id is None:
            return None
        refusal = self._staging.sending(cluster_name, attempt_id).refusal
        return None if refusal is None else failed(error_of(refusal), row)

    def _start_row_of(
        self, cluster_name: str, attempt_id: int | None, requests: list[Row]
    ) -> Row | None:
        """Return the request that was to start the attempt, if SkyPilot still remembers it.

        Its number may not have been stored: then it is the first one since the attempt was staged.
        """
        starts = [row for row in requests if verb_of(row) in STARTS]
        if attempt_id is None:
            return starts[0] if starts else None
        number = self._staging.sending(cluster_name, attempt_id).request_id
        if number is not None:
            return next((row for row in starts if row["request_id"] == number), None)
        staged_at = self._staging.staged_at(cluster_name, attempt_id)
        if staged_at is None:
            return None
        return next((row for row in starts if float(row["created_at"]) >= staged_at), None)

    def _came_to_nothing(self, start_row: Row, row: Row | None) -> ClusterView:
        failure = self._calls.failure_of(str(start_row["request_id"]))
        if _found_no_nodes(start_row, failure):
            # If it is requested again, it is launched.
            return ClusterView(ClusterPhase.GONE, backend_status="not up")
        if failure is None:
            message = str(start_row.get("message") or "SkyPilot did not finish its launch.")
            return failed(BackendError(message), row)
        if failure.kind in {"cancelled", "interrupted"}:
            # By a restart of its server, or by hand: another request repairs it.
            return ClusterView(ClusterPhase.GONE, backend_status=failure.kind)
        error = error_of(failure)
        if isinstance(error, BackendUnavailableError):
            # It was a cloud that did not answer. The request is over: nothing comes of waiting.
            error = NoCapacityError(str(failure.detail.get("said") or failure.message)[:2000])
        return failed(error, row)

    def _was_not_up(self, request: LaunchRequest) -> bool:
        """Whether the attempt was handed to nodes that only their row says are up."""
        name = request.cluster_name
        start_row = self._start_row_of(name, request.attempt_id, self._calls.requests_of(name))
        if start_row is None or start_row["status"] != "FAILED":
            return False
        return _found_no_nodes(start_row, self._calls.failure_of(str(start_row["request_id"])))

    def _by_its_job(
        self, cluster_name: str, attempt_id: int | None, row: Row, *, is_recent: bool
    ) -> ClusterView | None:
        """Report the state by the attempt's job; None: the nodes are not up, despite the row."""
        assert attempt_id is not None  # noqa: S101 - a cluster here may have had several
        is_staged = self._staging.staged_at(cluster_name, attempt_id) is not None
        found = self._calls.jobs(cluster_name, job_name_of(attempt_id)) if is_staged else []
        if found is None:
            return None
        if not found and not is_recent:
            # Nodes without the attempt: it was never handed over.
            return ClusterView(ClusterPhase.GONE, backend_status=str(row["status"]))
        # One that was handed over just now is not in every answer yet.
        lives = not found or any(job_lives(job) for job in found)
        return view_of(row, ClusterPhase.UP if lives else ClusterPhase.ENDED)

    def _forget(self, cluster_name: str) -> None:
        self._staging.remove(cluster_name)
        for key in [key for key in self._stops if key[0] == cluster_name]:
            del self._stops[key]


def _found_no_nodes(start_row: Row, failure: SkyPilotError | None) -> bool:
    """Whether an attempt that was handed to nodes found them gone."""
    return verb_of(start_row) == "exec" and (failure is None or failure.kind in NO_NODES)


def _finished_within(request: Row | None, seconds: float) -> bool:
    finished_at = request.get("finished_at") if request is not None else None
    return finished_at is not None and time.time() - float(finished_at) < seconds
