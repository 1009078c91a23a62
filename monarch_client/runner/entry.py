"""The entry point of a runner: arguments, lock and guardian."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.crash_points import reach
from monarch_client.runner.base import process_tree
from monarch_client.runner.base.config import ConfigError, NodeFolder, read_config
from monarch_client.runner.base.first_signals import END_SIGNALS, hold_signals, take_signals
from monarch_client.runner.base.wakeups import Wakeups
from monarch_client.runner.node.skypilot_node import skypilot_node

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.config import AttemptConfig

_CONFIG_ERROR_CODE = 2


def main(argv: list[str] | None = None) -> int:
    """Run one node of an attempt. A second runner on the same node returns 0 at once."""
    hold_signals()
    arguments = _parse_arguments(argv)
    try:
        rank, addresses, folder = _where(arguments)
        # It holds a token and a key, and may have travelled without its permissions.
        with contextlib.suppress(OSError):
            arguments.config.chmod(0o600)
        config = read_config(arguments.config, addresses)
        config.address_of(rank)
    except (ConfigError, IndexError) as error:
        sys.stderr.write(f"runner: {error}\n")
        return _CONFIG_ERROR_CODE
    # Not by umask, which users' programs would inherit.
    if folder.shared is not None:
        folder.shared.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.workdir.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder.lock)
    if lock is None:
        return 0
    reach("runner.started")
    return _guard(lambda is_restart: _run(config, rank, folder, is_restart))


def _parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="runner.pyz", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="attempt.json")
    parser.add_argument("--root", type=Path, required=True, help="this node's directory")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--rank", type=int, help="which node this is")
    which.add_argument(
        "--from-skypilot",
        action="store_true",
        help="take rank and addresses from SkyPilot's variables; --root is the attempt's "
        "directory, and what later attempts can use is kept beside it",
    )
    return parser.parse_args(argv)


def _where(arguments: argparse.Namespace) -> tuple[int, tuple[str, ...], NodeFolder]:
    """Return this node's rank, all addresses if the configuration has none, and its folder."""
    root = arguments.root.resolve()
    if not arguments.from_skypilot:
        return arguments.rank, (), NodeFolder(root)
    node = skypilot_node(os.environ)
    # A directory for each node: homes may be on a file system that all nodes share.
    return node.rank, node.addresses, NodeFolder(root / f"rank-{node.rank}", root.parent)


def _lock(path: Path) -> int | None:
    """Lock the file for the life of this process and its guardian; None if another has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _guard(run: Callable[[bool], int]) -> int:
    """Run in a child process; if it is killed, end its processes and start a child that reports it.

    The guardian does nothing else, which keeps it small and safe.
    """
    process_tree.become_subreaper()
    is_restart = False
    wakeups = Wakeups()
    while True:
        hold_signals()
        pid = _fork(run, is_restart)
        for number in END_SIGNALS:
            signal.signal(number, _forward_to(pid))
        # What has a handler of Python's ends a wait; what has none does not.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with wakeups.by_signals():
            take_signals()
            returncode = _wait_for(pid, wakeups)
        process_tree.kill_descendants()
        if returncode == 0 or is_restart:
            return 128 - returncode if returncode < 0 else returncode
        is_restart = True


def _forward_to(pid: int) -> Callable[[int, object], None]:
    return lambda number, _frame: process_tree.signal_all([pid], number)


def _fork(run: Callable[[bool], int], is_restart: bool) -> int:  # noqa: FBT001
    # No thread has been started yet, so the child is whole.
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        process_tree.be_signalled_when_parent_dies(signal.SIGTERM)
        process_tree.become_subreaper()
        code = run(is_restart)
    except BaseException:  # noqa: BLE001 - the guardian must hear of it, whatever it is
        traceback.print_exc()
    finally:
        # Threads that still wait for the portal must not hold the exit.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait_for(pid: int, wakeups: Wakeups) -> int:
    while True:
        done, status = os.waitpid(-1, os.WNOHANG)
        if done == pid:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if done == 0:
            wakeups.wait(None)


def _run(config: AttemptConfig, rank: int, folder: NodeFolder, is_restart: bool) -> int:  # noqa: FBT001
    # Imported after the fork: the guardian stays small.
    from monarch_client.runner.runner import Runner  # noqa: PLC0415

    return Runner(config, rank, folder).run(is_restart=is_restart)
