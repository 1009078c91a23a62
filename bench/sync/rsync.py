"""The peer: a daemon of rsync with a folder for each node, to all of which rsync runs at once."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.sync.nodes import addresses
from tests.waiting import eventually

PORT = 22873


def version() -> str:
    """Return the name of the peer. SystemExit: rsync is not installed."""
    if shutil.which("rsync") is None:
        raise SystemExit("bench.sync: install rsync")
    first = subprocess.check_output(["rsync", "--version"], text=True).split()
    return f"rsync {first[2]}"


@contextmanager
def daemon(folder: Path, count: int) -> Iterator[None]:
    """Run a daemon with so many folders."""
    lines = ["use chroot = no", "read only = no", "uid = 0", "gid = 0", "max connections = 100"]
    for rank in range(count):
        target = folder / f"rsync-{rank}"
        target.mkdir()
        lines += [f"[node{rank}]", f"path = {target}"]
    config = folder / "rsyncd.conf"
    config.write_text("\n".join(lines) + "\n")
    options = [f"--config={config}", f"--port={PORT}", f"--address={addresses(1)[0]}"]
    process = subprocess.Popen(["rsync", "--daemon", "--no-detach", *options])

    def listens() -> bool:
        listing = ["rsync", f"rsync://{addresses(1)[0]}:{PORT}/"]
        return subprocess.run(listing, check=False, capture_output=True).returncode == 0

    try:
        if not eventually(listens):
            raise SystemExit("bench.sync: rsync's daemon does not listen")
        yield
    finally:
        process.terminate()
        process.wait()


def copy_to_all(folder: Path, count: int) -> float:
    """Copy a folder to all nodes at the same time; return the seconds that it took."""
    began_at = time.perf_counter()
    processes = [subprocess.Popen(_command(folder, rank)) for rank in range(count)]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit("bench.sync: rsync failed")
    return time.perf_counter() - began_at


def copy_to_each(folder: Path, count: int) -> float:
    """Copy a folder to one node after the other; return the seconds that it took."""
    began_at = time.perf_counter()
    for rank in range(count):
        subprocess.run(_command(folder, rank), check=True)
    return time.perf_counter() - began_at


def _command(folder: Path, rank: int) -> list[str]:
    target = f"rsync://{addresses(1)[0]}:{PORT}/node{rank}/"
    return ["rsync", "-a", "--delete", f"{folder}/", target]
