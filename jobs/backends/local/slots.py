"""Leases of loopback networks, and as root of user ids: one file a lease, no database.

A lease names the cluster's directory; it is stale once that no longer exists. Processes that run
under a leased user id are killed in `processes.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.backends.file_locks import locked_file
from jobs.backends.local.ports import is_bindable
from jobs.backends.local.processes import living_uids
from jobs.backends.private_files import make_directory
from jobs.errors import BackendError

# Slot i is 127.(64 + i // 250).(i % 250 + 1).0/24 and, as root, user id FIRST_UID + i: the range
# that systemd keeps for users without an entry in /etc/passwd, 61184 to 65519.
SLOTS = 4000
FIRST_UID = 61184
FIRST_HOST = 10
# If the ports of this many free slots are in use, a program listens on every address.
MAX_TRIES = 200
_RELEASE_PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Slot:
    """One leased network, with the user id that belongs to it."""

    number: int

    @property
    def uid(self) -> int:
        """The user id of the jobs in this slot, where they get one of their own."""
        return FIRST_UID + self.number

    def address(self, rank: int) -> str:
        """Return the loopback address of node `rank`."""
        return f"127.{64 + self.number // 250}.{self.number % 250 + 1}.{FIRST_HOST + rank}"


class SlotLeases:
    """The leases in one directory; all installations that share user ids share the directory."""

    def __init__(self, directory: Path, start: str) -> None:
        """Set the first slot by `start`, so that separate installations use different ones."""
        self._directory = directory
        self._first = int(hashlib.sha256(start.encode()).hexdigest(), 16) % SLOTS

    def take(self, holder: Path, ports: Iterable[tuple[int, int]], *, own_uid: bool) -> Slot:
        """Lease a free slot to the cluster in directory `holder`, or give back the one it has.

        `ports` are (rank, port) pairs that must be free. BackendError: none is.
        """
        wanted = list(ports)
        make_directory(self._directory, 0o700)
        if (slot := self.find(holder)) is not None:
            return slot
        # A directory deleted by hand may leave its processes behind: their user id stays taken.
        busy = living_uids() if own_uid else frozenset[int]()
        tries = 0
        for number in range(SLOTS):
            slot = Slot((self._first + number) % SLOTS)
            if slot.uid in busy or not self._is_free(slot):
                continue
            if _can_bind(slot, wanted):
                if self._claim(slot, holder):
                    return slot
            elif (tries := tries + 1) == MAX_TRIES:
                raise BackendError(
                    f"No loopback network has the ports {sorted({port for _, port in wanted})} "
                    "free: a program on this machine listens on them on every address. "
                    "Stop it, or choose another portal.port."
                )
        raise BackendError(
            f"All {SLOTS:,} loopback networks of this machine are in use.",
            hint="Wait until other jobs on it have ended.",
        )

    def find(self, holder: Path) -> Slot | None:
        """Return the slot that the cluster in directory `holder` has leased."""
        for path in self._files():
            if _holder(path) == holder:
                return Slot(int(path.name))
        return None

    def release(self, holder: Path) -> None:
        """Give back the lease of `holder`. Silent if it has none.

        A lease that cannot be removed now stays: it becomes stale when `holder` is removed.
        """
        self._draft(holder).unlink(missing_ok=True)  # of a launch that was cut off
        if (slot := self.find(holder)) is not None:
            self._remove(slot, holder, _RELEASE_PATIENCE_S)

    def _is_free(self, slot: Slot) -> bool:
        """Whether the slot has no lease; removes a stale lease if that is possible now."""
        path = self._path(slot)
        if not path.exists():
            return True
        holder = _holder(path)
        if holder is not None and holder.exists():
            return False
        return self._remove(slot, holder, patience_s=0.0)

    def _remove(self, slot: Slot, holder: Path | None, patience_s: float) -> bool:
        """Remove the lease if it is still that of `holder`; False if it is not, or is locked.

        Takes a lock, so that a process that was stopped after reading cannot remove the lease of a
        later holder. Never waits for the lock: there are other slots.
        """
        path = self._path(slot)
        with locked_file(self._directory / "lock", patience_s) as is_alone:
            if not is_alone:
                return False
            if not path.exists():
                return True  # and is left alone: a lease made from now on is another launch's
            if _holder(path) != holder:
                return False
            path.unlink()
        return True

    def _claim(self, slot: Slot, holder: Path) -> bool:
        """Write the lease atomically; return False if another process was faster."""
        # One process at a time launches a cluster, so no other writes this draft.
        draft = self._draft(holder)
        draft.write_text(json.dumps({"cluster": str(holder)}))
        try:
            os.link(draft, self._path(slot))
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def _draft(self, holder: Path) -> Path:
        return self._directory / f"{hashlib.sha256(str(holder).encode()).hexdigest()}.new"

    def _path(self, slot: Slot) -> Path:
        return self._directory / str(slot.number)

    def _files(self) -> list[Path]:
        try:
            return [path for path in self._directory.iterdir() if path.name.isdigit()]
        except FileNotFoundError:
            return []


def _holder(path: Path) -> Path | None:
    """Return the holder of the lease `path`; None if there is none or its writer was cut off."""
    with suppress(FileNotFoundError, ValueError, KeyError):
        return Path(json.loads(path.read_text())["cluster"])
    return None


def _can_bind(slot: Slot, ports: list[tuple[int, int]]) -> bool:
    return all(is_bindable(slot.address(rank), port) for rank, port in ports)
