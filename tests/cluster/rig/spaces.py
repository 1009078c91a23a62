"""Linux namespaces from Python, which knows them from 3.12 on only."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess

NEW_MOUNTS = 0x00020000
NEW_NAMES = 0x04000000  # host name
NEW_IPC = 0x08000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces in `flags` for new ones. NEW_PIDS holds for the next child only."""
    _check(_libc.unshare(flags), "unshare")


def set_host_name(name: str) -> None:
    """Name this UTS namespace."""
    encoded = name.encode()
    _check(_libc.sethostname(encoded, len(encoded)), "sethostname")


def die_with_parent() -> None:
    """Request SIGKILL for this process as soon as its parent has ended."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl")


def mount(*arguments: str) -> None:
    """Call mount(8); its own message is in the error."""
    run("mount", *arguments)


def run(*argv: str, text: str | None = None) -> str:
    """Run `argv` and return its output. RuntimeError with its message if it fails."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        message = done.stderr.strip() or done.stdout.strip()
        raise RuntimeError(f"`{' '.join(argv)}` ended with {done.returncode}: {message}")
    return done.stdout


def _check(result: int, call: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
