"""Crash points: named moments at which a test can hold a process, to kill something just then.

Without MPORTAL_CRASH_POINTS in the environment, `reach` does nothing. With it, the variable names a
directory. A file there with a point's name makes the first process that reaches the point rename
it to `<point>.at-<pid>`, and wait until that is removed. A runner uses the folder `rank-<K>`.
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
    "cancel.committed": "the cancel is stored; neither hinted at nor answered",
    "dependency.settled": "a needed job's end has been acted on; the queue has no hint of it",
    "plan.decided": "the queue's pass has its decisions; none is carried out",
    "plan.started": "the attempt's rows are committed; no machines have been requested",
    "preempt.stopped": "a job is STOPPING for another; the next victim is not stopped",
    "preempt.queued": "it is queued again; the tear-down of its machines is not hinted at",
    "cluster.taken": "the attempt's rows are committed, on a warm cluster; nothing is requested",
    "launch.asking": "nothing exists under the cluster's name; the launch is about to be requested",
    "launch.laid_out": "the nodes' directories are made; no runner is started",
    "launch.staged": "the files for the nodes are ready; SkyPilot has not been called",
    "launch.sent": "SkyPilot has taken the launch; the number of its request is not stored",
    "launch.asked": "the backend has accepted the launch; that is not stored",
    "launch.stored": "the job is SETTING_UP; the next look at it is not hinted at",
    "ingest.stored": "frames are written; they are not committed",
    "ingest.committed": "frames are stored; no hint is sent, and the runner has no answer",
    "follow.read": "the follower has read frames; they are not stored",
    "verdict.known": "the attempt has its verdict; the job has not moved on",
    "verdict.taken": "the job has moved on; the release of its machines is not hinted at",
    "cluster.kept": "the job has moved on and its warm cluster waits for the next; no hint is sent",
    "recover.due": "the old machines are terminated; the next attempt is not made",
    "budget.noted": "a project's spending was looked at and noted; what runs is not stopped",
    "budget.stopped": "one job of the project is STOPPING for its budget; others are not yet",
    "stop.asking": "the job is STOPPING; its runners have no stop request",
    "stop.answering": "a runner that pushed is about to be answered that it is to end",
    "stop.asked": "the runners have the stop request; nothing of that is stored",
    "autostop.begun": "the warm cluster takes no job any more; its machines are still on",
    "autostop.asked": "the machines are switched off; that is not stored",
    "teardown.begun": "the cluster is marked as STOPPING; the backend has no request",
    "teardown.asked": "the machines are terminated; that is not stored",
    "seal.written": "a chunk of the log is in the blob store; the rows still say it is not",
    "move.copied": "a chunk of the log is in both stores; its row names the old one",
    "move.switched": "the row of a chunk names the new store; the old one still has it",
    "runner.started": "the runner holds its lock; it has done nothing yet",
    "runner.setup": "setup is about to begin",
    "runner.workers": "the workers are about to be started",
    "runner.run": "the driver, or the command, is about to be started",
    "runner.exited": "a command has ended; its exit code is not recorded",
    "runner.ending": "the verdict is known; what still runs is about to be ended",
    "runner.verdict": "the last frame is in the journal; the runner has not noted that it is over",
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
    """Return the variables for the runner of node `rank`; {} if no point can be held."""
    return {} if _directory is None else {VARIABLE: str(Path(_directory, f"rank-{rank}"))}


def directories() -> list[Path]:
    """Return the directories that runners in private mounts need to see."""
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
