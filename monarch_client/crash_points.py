"""Named moments at which a process can be held still, so that a test may kill something just then.

Without MPORTAL_CRASH_POINTS in the environment, `reach` does nothing. With it, the variable names a
directory: a file there that has a point's name makes the first process that reaches the point take
the file away as `<point>.at-<pid>`, and wait until that is removed. A runner looks in `rank-<K>`.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

VARIABLE = "MPORTAL_CRASH_POINTS"
# Each point with what has happened when it is reached and, after the semicolon, what has not.
POINTS = {
    "submit.stored": "the job's rows are written; they are not committed",
    "submit.committed": "the job is queued; neither hinted at nor answered",
    "schedule.due": "a schedule's time has come and its job is checked; nothing is stored",
    "schedule.stored": "the job of that time and its row are written; they are not committed",
    "cancel.committed": "the cancellation is stored; neither hinted at nor answered",
    "dependency.settled": "the end of a dependency is processed; the queue has no hint of it",
    "plan.decided": "the scheduling pass has its decisions; none is applied",
    "plan.started": "the attempt's rows are committed; no machines are requested",
    "preempt.stopped": "a job is STOPPING for another; the next victim is not stopped",
    "preempt.queued": "it is queued again; the termination of its cluster is not hinted at",
    "cluster.taken": "the attempt's rows are committed, on a warm cluster; nothing is requested",
    "launch.asking": "no cluster of this name exists; it is about to be launched",
    "launch.laid_out": "the nodes' directories are made; no runner is started",
    "launch.staged": "the files for the nodes are staged; SkyPilot has no request yet",
    "launch.sent": "SkyPilot has accepted the launch; its request id is not stored",
    "launch.asked": "the backend has the launch request; that is not stored",
    "launch.stored": "the job is SETTING_UP; its next step is not hinted at",
    "ingest.stored": "frames are written; they are not committed",
    "ingest.committed": "frames are stored; no hint is sent, and the runner has no answer",
    "follow.read": "the follower has read frames; they are not stored",
    "verdict.known": "the attempt has its verdict; the job has not moved on",
    "verdict.taken": "the job has moved on; the release of its machines is not hinted at",
    "cluster.kept": "the job has moved on and its cluster stays warm; no hint is sent",
    "recover.due": "the old cluster is terminated; the next attempt is not created",
    "budget.noted": "a project's spending is recorded; running jobs are not stopped",
    "budget.stopped": "one job of the project is STOPPING for its budget; the others are not",
    "stop.asking": "the job is STOPPING; its runners have no request to stop",
    "stop.answering": "the answer that stops a runner that pushes is about to be sent",
    "stop.asked": "the runners have the request to stop; that is not stored",
    "autostop.begun": "the warm cluster accepts no jobs any more; its machines are still on",
    "autostop.asked": "the machines are stopped; that is not stored",
    "teardown.begun": "the cluster is STOPPING; the backend has no request",
    "teardown.asked": "the machines are terminated; that is not stored",
    "seal.written": "a chunk of the log is in the blob store; the rows still say it is not",
    "move.copied": "a chunk of the log is in both stores; its row names the old one",
    "move.switched": "the row of a chunk names the new store; the old one still has it",
    "runner.started": "the runner holds its lock; it has done nothing yet",
    "runner.setup": "setup is about to begin",
    "runner.workers": "the workers are about to be started",
    "runner.run": "the driver, or the command, is about to be started",
    "runner.exited": "a command has ended; its exit code is not recorded",
    "runner.ending": "the verdict is known; remaining processes are about to be stopped",
    "runner.verdict": "the last frame is in the journal; the end is not recorded on disk",
}
# A point that a test forgot must not hold a process for ever.
LONGEST_HOLD_S = 60.0

_LOOK_S = 0.005
_directory = os.environ.get(VARIABLE)


def reach(point: str) -> None:
    """Wait here if a test holds `point`, which is one of POINTS."""
    if _directory is not None:
        _hold(_directory, point)


def environment_of(rank: int) -> dict[str, str]:
    """Return the variables for the runner of node `rank`; none if no crash point is held."""
    return {} if _directory is None else {VARIABLE: str(Path(_directory, f"rank-{rank}"))}


def directories() -> list[Path]:
    """List the folders that isolated runners must be able to reach."""
    return [] if _directory is None else [Path(_directory)]


def _hold(directory: str, point: str) -> None:
    armed = os.path.join(directory, point)  # noqa: PTH118 - where nothing is armed it must be cheap
    taken = f"{armed}.at-{os.getpid()}"
    try:
        os.rename(armed, taken)  # noqa: PTH104
    except OSError:
        return
    deadline = time.monotonic() + LONGEST_HOLD_S
    while os.path.exists(taken) and time.monotonic() < deadline:  # noqa: PTH110
        time.sleep(_LOOK_S)
