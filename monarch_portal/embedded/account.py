"""The user id that the embedded servers run under. PostgreSQL refuses to run as root.

As root each installation gets an id of its own that no account on the machine has: it cannot be
used to sign in, and two installations can't read each other's data. Else servers run as ourselves.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Above it are the ids that local jobs run under (61184 and up), below it human accounts.
SERVER_IDS = range(61100, 61184)
FIRST_HUMAN_ID = 1000


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group id. `changes`: whether starting a process under it changes the user."""

    uid: int
    gid: int

    @property
    def changes(self) -> bool:
        """Whether a process started under this account is another user than we are."""
        return self.uid != os.geteuid()


def ourselves() -> Account:
    """Return the account this process runs under."""
    return Account(os.geteuid(), os.getegid())


def server_account(data: Path, preferred: int) -> Account:
    """Return the account for servers with data in `data`: its owner, else a free one.

    The search for a free id begins at `preferred`, so that most installations differ at once.
    """
    if os.geteuid() != 0:
        return ourselves()
    if data.exists() and data.stat().st_uid != 0:
        return Account(data.stat().st_uid, data.stat().st_gid)
    taken = {path.stat().st_uid for path in data.parent.parent.glob(f"*/{data.name}")}
    uid = _first_free(preferred, taken)
    return Account(uid, uid)


def borrowed_account() -> Account:
    """Return a system account that runs no process, as initdb wants a name for its user id."""
    busy = set(_uids_of_processes())
    for entry in pwd.getpwall():
        if 0 < entry.pw_uid < FIRST_HUMAN_ID and entry.pw_uid not in busy:
            return Account(entry.pw_uid, entry.pw_gid)
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def _first_free(preferred: int, taken: set[int]) -> int:
    known = taken | {entry.pw_uid for entry in pwd.getpwall()}
    size = len(SERVER_IDS)
    for step in range(size):
        uid = SERVER_IDS[(preferred + step) % size]
        if uid not in known:
            return uid
    return SERVER_IDS[preferred % size]


def _uids_of_processes() -> Iterable[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield entry.stat().st_uid
            except FileNotFoundError:
                continue
