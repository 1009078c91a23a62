"""The user that a job runs as and what it sees of this machine; starts runners accordingly.

As root each cluster gets a user id of its own. What that user cannot reach (an interpreter under
/root, say) is shown to it in private mounts. An ordinary user's portal runs jobs as that same user.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.backends.local.launcher import SYS_LANDLOCK_CREATE_RULESET
from jobs.errors import BackendError

_LAUNCHER = Path(__file__).with_name("launcher.py")
# The launcher hides these from jobs in any case; what is below them has to be shown again.
_ALWAYS_HIDDEN = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - not used as a place for files
_LAUNCHER_PATIENCE_S = 30.0
# The flag and the answer that landlock_create_ruleset(2) documents.
_ASK_FOR_VERSION, _LANDLOCK_WITH_SCOPES = 1, 6


@dataclass(frozen=True, slots=True)
class NodeStart:
    """The start of one node's runner. Field names are those that the launcher reads."""

    rank: int
    command: list[str]
    environment: dict[str, str]
    cwd: str
    tmp: str
    started: str  # this file is made, once, by the process that starts the node
    output: str


def can_keep_sockets_apart() -> bool:
    """Whether the kernel can refuse connections between jobs' abstract sockets (Linux 6.12)."""
    version = ctypes.CDLL(None).syscall(
        SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_FOR_VERSION
    )
    return bool(version >= _LANDLOCK_WITH_SCOPES)


def jobs_get_own_user() -> bool:
    """Whether jobs run as users of their own here, and not as the portal's."""
    return os.geteuid() == 0


def start_nodes(
    nodes: Sequence[NodeStart], uid: int | None, needed: Iterable[Path], lock: int
) -> None:
    """Start the runners, detached from this process; return when all of them run.

    `needed`: directories a runner must see. `lock` is a file descriptor that stays open until the
    launcher has ended, even if this process dies before. BackendError: some could not be started.
    """
    covered = blocked_directories(needed) if uid is not None else []
    plan = {
        "uid": uid,
        "covered": [str(path) for path in covered],
        "visible": [str(path) for path in needed if is_below(path, [*covered, *_ALWAYS_HIDDEN])],
        "nodes": [asdict(node) for node in nodes],
    }
    complaint = _run_launcher(json.dumps(plan), lock)
    if complaint:
        raise BackendError(_explain(complaint, covered)) from _system_error(complaint)


def _system_error(complaint: str) -> OSError | None:
    """Return the error of the operating system that the launcher's process met."""
    found = re.search(r"\[Errno (\d+)\]", complaint)
    return OSError(int(found[1]), os.strerror(int(found[1]))) if found else None


def _run_launcher(plan: str, lock: int) -> str:
    """Start the nodes and return the launcher's complaint; "" if every node runs."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(_LAUNCHER)],
            input=plan,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={},
            cwd="/",
            start_new_session=True,
            pass_fds=(lock,),
            timeout=_LAUNCHER_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"they did not start within {_LAUNCHER_PATIENCE_S:.0f} s"
    return done.stderr.strip() if done.returncode else ""


def blocked_directories(needed: Iterable[Path]) -> list[Path]:
    """List the topmost directories that keep other users from reaching `needed`."""
    blocked: set[Path] = set()
    for path in needed:
        for ancestor in reversed(path.parents):
            if not ancestor.stat().st_mode & stat.S_IXOTH:
                blocked.add(ancestor)
                break
    return sorted(blocked)


def is_below(path: Path, tops: Iterable[Path]) -> bool:
    """Whether `path` is in one of the directories `tops`."""
    return any(path.is_relative_to(top) for top in tops)


def _explain(complaint: str, covered: list[Path]) -> str:
    sentence = f"The job's processes could not be started: {complaint[-500:]}."
    if covered and "private mounts" in complaint:
        names = " and ".join(map(str, covered))
        return (
            f"{sentence} Jobs run as a user that cannot reach {names}, and this machine refuses "
            "private mounts. Install the portal where every user may read it, or allow "
            "CAP_SYS_ADMIN to it, or run the portal as an ordinary user."
        )
    if "Permission denied" in complaint:
        return f"{sentence} Make the interpreter and the portal's packages readable for all users."
    return sentence
