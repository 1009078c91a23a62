"""Making PostgreSQL's data directory, and knowing whose version wrote it.

initdb wants a name for the user id that it runs under; the ids of servers have none.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from monarch_portal.embedded.account import Account, borrowed_account
from monarch_portal.embedded.errors import DataVersionError, EmbeddedError, UnreachableHomeError
from monarch_portal.embedded.private_files import make_private, secret_in, write_owned
from monarch_portal.embedded.server_paths import ADMIN, PostgresPaths

MAJOR_VERSION = "18"

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_BIND = 4096


def check_version(data: Path) -> None:
    """Raise DataVersionError if another major version of PostgreSQL wrote `data`."""
    version = (data / "PG_VERSION").read_text().strip()
    if version != MAJOR_VERSION:
        raise DataVersionError(
            f"{data} was written by PostgreSQL {version}, this release brings {MAJOR_VERSION}. "
            f"Start the release that wrote it, save the database with pg_dump, move the "
            f"directory away, start this release, load the dump with psql."
        )


def make_data(bin_: Path, paths: PostgresPaths, account: Account, *, durable: bool) -> None:
    """Run initdb beside the final place, and move the result there when it is complete."""
    work = paths.data.parent
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_way(work.parent, account)
    maker = borrowed_account() if account.changes else account
    make_private(work, maker)
    unfinished, password_file = work / "unfinished", work / "initdb-password"
    shutil.rmtree(unfinished, ignore_errors=True)
    write_owned(password_file, secret_in(paths.admin_secret), maker)
    argv = [str(bin_ / "initdb"), f"--pgdata={unfinished}", f"--username={ADMIN}"]
    argv += ["--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8"]
    argv += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    try:
        _run_initdb(argv if durable else [*argv, "--no-sync"], work, maker)
    finally:
        password_file.unlink()
    _give(work, account)
    unfinished.rename(paths.data)


def _run_initdb(argv: list[str], work: Path, maker: Account) -> None:
    switch = maker.changes
    try:
        done = subprocess.run(
            argv,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            user=maker.uid if switch else None,
            group=maker.gid if switch else None,
            extra_groups=[] if switch else None,
            preexec_fn=None if _has_name(maker.uid) else _with_name(maker, work),
        )
    except subprocess.SubprocessError as error:
        raise EmbeddedError(
            f"The user id {maker.uid} has no name in /etc/passwd, which PostgreSQL's initdb "
            f"needs, and the kernel lets no private one be made. Start as a user with a name."
        ) from error
    if done.returncode:
        raise EmbeddedError(f"initdb failed:\n{done.stderr.decode(errors='replace').strip()}")


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _with_name(account: Account, work: Path) -> Callable[[], None]:
    """Return a function by which a child sees an /etc/passwd that names its user id."""
    libc = ctypes.CDLL(None, use_errno=True)
    passwd = work / "initdb-passwd"
    passwd.write_text(f"mportal:x:{account.uid}:{account.gid}::/:/bin/false\n")

    def see_it() -> None:
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{account.uid} {account.uid} 1")
        Path("/proc/self/gid_map").write_text(f"{account.gid} {account.gid} 1")
        if libc.mount(os.fsencode(passwd), b"/etc/passwd", None, MS_BIND, None):
            raise OSError(ctypes.get_errno(), "mount")

    return see_it


def _require_way(directory: Path, account: Account) -> None:
    """Raise UnreachableHomeError unless `account` may pass through `directory` and all above it."""
    if not account.changes:
        return
    for step in (directory, *directory.parents):
        if not step.stat().st_mode & 0o001 and step.stat().st_uid != account.uid:
            raise UnreachableHomeError(
                f"Started by root, PostgreSQL runs under the user id {account.uid}, which can not "
                f"pass through {step}. Set MPORTAL_HOME to a directory that others may enter."
            )


def _give(tree: Path, account: Account) -> None:
    if os.geteuid() != 0:
        return
    for path in (tree, *tree.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
