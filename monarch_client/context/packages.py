"""Packages of tasks: installed once on a host, into a folder that executors put on their path."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO

from monarch_client.context.errors import PackagesError

# In the environment of an executor: its packages, as JSON.
VARIABLE = "MONARCH_CONTEXT_PACKAGES"
INSTALL_S = 1200.0
_LOOK_EVERY_S = 0.1
_LONGEST_REASON = 2000


def variables_of(packages: Sequence[str]) -> dict[str, str]:
    """Return the variables of an executor with these packages."""
    return {VARIABLE: json.dumps(list(packages))} if packages else {}


def requested_packages(env: Mapping[str, str]) -> list[str]:
    """Return the packages that `variables_of` has put into an environment."""
    found: list[str] = json.loads(env.get(VARIABLE, "[]"))
    return found


def use_packages(packages: Sequence[str]) -> None:
    """Install packages unless they are, and put them first on this process's path.

    PackagesError: they cannot be installed; with the message of the resolver.
    """
    folder = (
        _cache()
        / blake2b(json.dumps([sys.version, sorted(packages)]).encode(), digest_size=16).hexdigest()
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        _lock(lock, packages)
        if not folder.exists():
            _install(packages, folder)
    sys.path.insert(0, str(folder))


def _lock(lock: IO[str], packages: Sequence[str]) -> None:
    """Wait while another executor installs the same packages."""
    deadline = time.monotonic() + INSTALL_S
    while not _is_locked(lock):
        if time.monotonic() > deadline:
            raise PackagesError(
                f"Another process has been installing {', '.join(packages)} for {INSTALL_S:.0f} s."
            )
        time.sleep(_LOOK_EVERY_S)


def _is_locked(lock: IO[str]) -> bool:
    """Whether this process has the lock now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _install(packages: Sequence[str], folder: Path) -> None:
    partial = folder.with_suffix(".partial")
    # Of a process that was killed; the lock is this one's.
    shutil.rmtree(partial, ignore_errors=True)
    uv = shutil.which("uv")
    program = [uv, "pip", "install", "--python"] if uv else [sys.executable, "-m", "pip", "install"]
    options = [sys.executable] if uv else ["--disable-pip-version-check", "--no-input"]
    command = [*program, *options, "--quiet", "--target", str(partial), "--", *packages]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        shutil.rmtree(partial, ignore_errors=True)
        reason = done.stdout.strip()[-_LONGEST_REASON:]
        raise PackagesError(f"{', '.join(packages)} could not be installed:\n{reason}")
    partial.rename(folder)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "monarch-portal" / "context" / "packages"
