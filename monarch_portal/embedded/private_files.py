"""Directories and files that one account alone may open."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from monarch_portal.embedded.account import Account, ourselves


def make_private(directory: Path, account: Account) -> None:
    """Make `directory`, if there is none, and close it to all but `account`."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    if directory.stat().st_uid != account.uid:
        os.chown(directory, account.uid, account.gid)


def new_secret() -> str:
    """Return a new random secret of 36 bytes."""
    return secrets.token_urlsafe(36)


def secret_in(path: Path, make: Callable[[], str] = new_secret) -> str:
    """Return the secret in the file `path`; make it now if there is none."""
    if not path.exists():
        write_owned(path, make(), ourselves())
    return path.read_text().strip()


def write_owned(path: Path, text: str, account: Account) -> None:
    """Write a new 0600 file that belongs to `account`, in place of whatever is there."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        if account.changes:
            os.fchown(file.fileno(), account.uid, account.gid)
    unfinished.rename(path)
