"""The files of a local cluster, who may read them, and how they are removed.

<cluster>/                the portal's; other users pass through
    cluster.json          0600: the record
    runner.pyz
    started-K  output-K   made by the launcher
    rank-K/               0700, the job's: attempt.json workdir/ state/ tmp/ python/
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.backends.attempt_file import Ports
from jobs.backends.file_locks import is_held, lock_in_time
from jobs.backends.local.processes import Process, boot_id, process_of
from jobs.backends.private_files import make_directory, remove_tree, write_private
from jobs.errors import BackendUnavailableError

# A launch takes a fraction of a second, with a large upload some seconds.
LOCK_PATIENCE_S = 5.0
SHARED_DIRECTORIES = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")))  # noqa: S108
# Names that the portal itself uses in a node's home.
OWN_NAMES = ("attempt.json", "state", "tmp", "python")


@dataclass(frozen=True, slots=True)
class Record:
    """Settings that a repeated launch must not change. Fields are named as in cluster.json."""

    num_nodes: int
    runner: str  # a newer portal goes on with the runner that the cluster began with
    ca_cert: str
    ca_key: str
    gpus: list[list[int]]  # numbers, by rank
    # Replacements, if the specification's ports are in use.
    ports: Ports | None = None


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """One node's directory, as the portal knows it."""

    path: Path

    @property
    def attempt_file(self) -> Path:
        """The file with the runner's configuration."""
        return self.path / "attempt.json"

    @property
    def workdir(self) -> Path:
        """The directory that holds the user's code and in which it runs."""
        return self.path / "workdir"

    @property
    def state(self) -> Path:
        """The runner's own."""
        return self.path / "state"

    @property
    def tmp(self) -> Path:
        """The node's temporary files."""
        return self.path / "tmp"

    @property
    def python(self) -> Path:
        """The node's Python environment."""
        return self.path / "python"

    def path_for(self, target: str) -> Path | None:
        """Return where an upload goes: the working directory, or a path in it or below ~.

        None for any other path, for ~ as a whole, and for the portal's own names below ~.
        """
        if target == "workdir":
            return self.workdir
        in_home = target.startswith("~/")
        path = Path(target[2:] if in_home else target)
        if path.is_absolute() or ".." in path.parts:
            return None
        if in_home and (not path.parts or path.parts[0] in OWN_NAMES):
            return None
        return (self.path if in_home else self.workdir) / path


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """The directory of one cluster. Nothing is made before it is locked for a launch."""

    path: Path

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.path.name

    def node(self, rank: int) -> NodeFolder:
        """Return the directory of node `rank`."""
        return NodeFolder(self.path / f"rank-{rank}")

    def started_file(self, rank: int) -> Path:
        """Return the file that names the process of the node's runner; made as it starts."""
        return self.path / f"started-{rank}"

    def output_file(self, rank: int) -> Path:
        """Return the file of what the launcher and the runner itself print: normally nothing."""
        return self.path / f"output-{rank}"

    def record(self) -> Record | None:
        """Read the record; None until a launch has got that far, or if a power cut emptied it."""
        with suppress(FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
            content = json.loads((self.path / "cluster.json").read_text())
            ports = content.pop("ports", None)
            return Record(**content, ports=Ports(*ports) if ports else None)
        return None

    def write_record(self, record: Record) -> None:
        """Write the record, whole or not at all."""
        write_private(self.path / "cluster.json", asdict(record))

    def has_started(self, rank: int) -> bool:
        """Whether a runner was ever started on node `rank`."""
        return self.started_file(rank).exists()

    def runner_process(self, rank: int) -> Process | None:
        """Return the process of the node's runner, if it is alive."""
        with suppress(FileNotFoundError, ValueError):
            boot, pid, ticks = self.started_file(rank).read_text().split()
            process = process_of(int(pid))
            if process is not None and process.started == int(ticks) and boot == boot_id():
                return process
        return None

    def is_alive(self, rank: int) -> bool:
        """Whether the node's runner, or the part of it that outlived the rest, is alive.

        The lock is checked only when the process has ended: no runner can take it any more.
        """
        return self.runner_process(rank) is not None or is_held(self.node(rank).state / "lock")

    def output(self, rank: int) -> str:
        """Return the end of what the node's runner printed: its complaints."""
        with suppress(FileNotFoundError), self.output_file(rank).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 400))
            return file.read().decode(errors="replace").strip()
        return ""

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Make the directory if need be, and keep launches and tear-downs apart.

        BackendUnavailableError: another process has kept it locked for longer than it should.
        """
        lock = self._lock()
        try:
            yield lock
        finally:
            os.close(lock)

    @property
    def is_locked(self) -> bool:
        """Whether a launch or a tear-down goes on right now."""
        try:
            lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def _lock(self) -> int:
        while True:
            make_directory(self.path, 0o711)
            with suppress(FileNotFoundError):
                lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
                self._wait_for(lock)
                # Its last holder may have removed the directory.
                if self._is(lock):
                    return lock
                os.close(lock)

    def _wait_for(self, lock: int) -> None:
        """Lock it in time: a process that hangs with the lock must not take others with it."""
        if not lock_in_time(lock, LOCK_PATIENCE_S):
            os.close(lock)
            message = f"Another process has been busy with {self.name} for a long time."
            raise BackendUnavailableError(message)

    def _is(self, lock: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(self.path.stat(), os.fstat(lock))
        return False

    def remove(self) -> None:
        """Delete everything, the record last. Call it when none of the job's processes is left."""
        for path in sorted(self.path.iterdir(), key=lambda path: path.name == "cluster.json"):
            remove_tree(path)
        self.path.rmdir()


def give_to(path: Path, uid: int) -> None:
    """Make `uid` the owner of everything in `path`; links themselves, not what they point to."""
    os.chown(path, uid, uid, follow_symlinks=False)
    for directory, subdirectories, files in os.walk(path):
        for name in (*subdirectories, *files):
            os.chown(Path(directory, name), uid, uid, follow_symlinks=False)


def remove_strays(uid: int) -> None:
    """Delete files in world-writable directories of a user who has no living process.

    The user id is leased again. Jobs with private mounts leave nothing there.
    """
    for directory in SHARED_DIRECTORIES:
        for path in directory.iterdir() if directory.is_dir() else ():
            # Files of other users may appear and vanish meanwhile.
            with suppress(FileNotFoundError):
                if path.lstat().st_uid == uid:
                    remove_tree(path)
