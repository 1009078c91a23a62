"""Leases of loopback networks, and as root of user ids: one file a lease, no database.

A lease names the cluster's directory; it is stale once that directory is gone. Who kills what runs
under a leased user id: `local_processes`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.backends.local_processes import processes_of_uid
from jobs.errors import BackendError

# Slot i is 127.(64 + i // 250).(i % 250 + 1).0/24 and, as root, user id FIRST_UID + i: the range
# that systemd keeps for users without an entry in /etc/passwd, 61184 to 65519.
SLOTS = 4000
FIRST_UID = 61184
FIRST_HOST = 10
# More taken slots in a row than any machine has jobs: somebody listens on every address.
MAX_TRIES = 200


@dataclass(frozen=True, slots=True)
class Slot:
    """One leased network, with the user id that belongs to it."""

    number: int

    @property
    def uid(self) -> int:
        """The user id of the jobs in this slot, where they get one of their own."""
        return FIRST_UID + self.number

    def address(self, rank: int) -> str:
        """The loopback address of node `rank`."""
        return f"127.{64 + self.number // 250}.{self.number % 250 + 1}.{FIRST_HOST + rank}"


class SlotLeases:
    """The leases in one directory; all installations that share user ids share the directory."""

    def __init__(self, directory: Path, start: str) -> None:
        """`start` spreads installations that do not share a directory over the slots."""
        self._directory = directory
        self._first = int(hashlib.sha256(start.encode()).hexdigest(), 16) % SLOTS

    def take(self, holder: Path, ports: Iterable[tuple[int, int]], *, own_uid: bool) -> Slot:
        """Lease a free slot to the cluster in directory `holder`, or give back the one it has.

        `ports` are (rank, port) pairs that must be free. BackendError: none is.
        """
        wanted = list(ports)
        with self._locked():
            if (slot := self.find(holder)) is not None:
                return slot
            for tried in range(MAX_TRIES):
                slot = Slot((self._first + tried) % SLOTS)
                if self._is_free(slot, own_uid=own_uid) and _can_bind(slot, wanted):
                    self._write(slot, holder)
                    return slot
        raise BackendError(
            f"No loopback network has the ports {sorted({port for _, port in wanted})} free: "
            "a program on this machine listens on them on every address. "
            "Stop it, or choose another portal.port."
        )

    def find(self, holder: Path) -> Slot | None:
        """The slot that the cluster in directory `holder` has leased."""
        for path in self._files():
            if _holder(path) == holder:
                return Slot(int(path.name))
        return None

    def release(self, holder: Path) -> None:
        """Give back the lease of `holder`. Silent if it has none."""
        with self._locked():
            if (slot := self.find(holder)) is not None:
                self._path(slot).unlink(missing_ok=True)

    def _is_free(self, slot: Slot, *, own_uid: bool) -> bool:
        holder = _holder(self._path(slot))
        if holder is not None and holder.exists():
            return False
        # A directory deleted by hand may leave its processes behind: their user id stays taken.
        return not (own_uid and processes_of_uid(slot.uid))

    def _write(self, slot: Slot, holder: Path) -> None:
        path = self._path(slot)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps({"cluster": str(holder)}))
        draft.replace(path)

    def _path(self, slot: Slot) -> Path:
        return self._directory / str(slot.number)

    def _files(self) -> list[Path]:
        try:
            return [path for path in self._directory.iterdir() if path.name.isdigit()]
        except FileNotFoundError:
            return []

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _holder(path: Path) -> Path | None:
    """Whose lease `path` is; None where there is no lease or its writer was cut off."""
    with suppress(FileNotFoundError, ValueError, KeyError):
        return Path(json.loads(path.read_text())["cluster"])
    return None


def _can_bind(slot: Slot, ports: list[tuple[int, int]]) -> bool:
    return all(_is_bindable(slot.address(rank), port) for rank, port in ports)


def _is_bindable(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Connections of the last job may still be in TIME_WAIT; a listener is refused all the same.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise BackendError(
                f"The address {address} can't be used ({os.strerror(error.errno or 0)}): the local "
                "backend needs Linux, where all of 127.0.0.0/8 is this machine."
            ) from error
    return True
