"""The rig's own view of this machine's files: whatever it writes is on tmpfs, gone with it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from tests.cluster.rig import places
from tests.cluster.rig.spaces import mount, run

# Places that programs write to by name. Their contents stay visible below what the rig adds.
OVERLAID = ("/etc", "/usr/local")
TEMPORARY = ("/tmp", "/dev/shm")


def make_private_mounts() -> None:
    """Cover what the rig writes to. Call in a mount namespace of its own, once."""
    mount("--make-rprivate", "/")
    mount("-t", "proc", "proc", "/proc")
    _cover("/run", "mode=0755")
    for place in OVERLAID:
        _overlay(Path(place))
    empty_temporary_folders()
    for place in {packages_of_checkout(), packages_of_nodes()}:
        if not any(place.is_relative_to(covered) for covered in OVERLAID):
            _overlay(place)
    os.chdir(places.CHECKOUT)
    for folder in (places.HOME, places.NODE_LOCAL, places.NODE_PIDS, places.FAULTS):
        folder.mkdir(parents=True)
    places.HOME.chmod(0o700)


def packages_of_checkout() -> Path:
    """Where the environment that runs this has its packages."""
    return Path(sysconfig.get_paths()["purelib"])


def packages_of_nodes() -> Path:
    """Where the interpreter that the environment was made of has its own, which nodes use."""
    said = run(
        os.path.realpath(sys.executable), "-c", "import site; print(site.getsitepackages()[0])"
    )
    return Path(said.strip())


def empty_temporary_folders() -> None:
    """Cover /tmp and /dev/shm, but for the checkout, should it be there."""
    checkout = os.open(places.CHECKOUT, os.O_PATH)
    for place in TEMPORARY:
        _cover(place, "mode=1777")
    if not places.CHECKOUT.exists():
        places.CHECKOUT.mkdir(parents=True)
        mount("--bind", f"/proc/{os.getpid()}/fd/{checkout}", str(places.CHECKOUT))
    os.close(checkout)


def keep_logs_here() -> None:
    """Empty the folder of logs, and see to the caches'."""
    shutil.rmtree(places.LOGS, ignore_errors=True)
    places.LOGS.mkdir(parents=True)
    places.UV_CACHE.mkdir(parents=True, exist_ok=True)


def _cover(place: str, options: str) -> None:
    mount("-t", "tmpfs", "-o", options, "rig", place)


def _overlay(place: Path) -> None:
    beside = places.RUN / "over" / place.relative_to("/")
    upper, work = beside / "upper", beside / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    options = f"lowerdir={place},upperdir={upper},workdir={work}"
    mount("-t", "overlay", "-o", options, "rig", str(place))
