"""`python -m tests.cluster.rig [--nodes N] -- COMMAND...`: COMMAND beside a Slurm cluster."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import traceback
from types import FrameType

from tests.cluster.rig import places
from tests.cluster.rig.first import live
from tests.cluster.rig.spaces import NEW_PIDS, die_with_parent, unshare

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sshd", "ssh", "rsync", "ip", "setpriv")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.rig")
    parser.add_argument("--nodes", type=int, default=4, help="how many nodes (4)")
    parser.add_argument("command", nargs="+", help="what to run, after --")
    options = parser.parse_args()
    if problem := what_is_missing():
        sys.stderr.write(f"The rig cannot start: {problem}\n")
        return 2
    return supervise(options.nodes, options.command)


def what_is_missing() -> str | None:
    """Explain why the rig cannot start on this machine and what helps; None if it can."""
    if os.geteuid():
        return "it makes namespaces and mounts, which needs root"
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if missing or not places.UV.exists():
        absent = [*missing, *([] if places.UV.exists() else [str(places.UV)])]
        return f"no {', '.join(absent)}; `deploy/install-rig` installs it"
    return None


def supervise(node_count: int, command: list[str]) -> int:
    """Run the rig as a child whose end, or ours, is the end of everything in it."""
    unshare(NEW_PIDS)
    begin, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        _become_first(begin, node_count, command)
    os.close(begin)
    os.write(go, b"x")

    def pass_on(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, pass_on)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become_first(begin: int, node_count: int, command: list[str]) -> None:
    code = 1
    try:
        die_with_parent()
        # Nothing comes if the parent had ended before it could be noticed.
        if os.read(begin, 1):
            code = live(node_count, command)
    except BaseException:  # noqa: BLE001 - the way out of a fork is _exit
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    raise SystemExit(main())
