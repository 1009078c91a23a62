"""The rig's own view of this machine's files: what it writes is on tmpfs and ends with it."""

from __future__ import annotations

import fcntl
import itertools
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
    give_nodes_the_packages()
    _overlay(packages_of_checkout())
    os.chdir(places.CHECKOUT)
    for folder in (places.HOME, places.NODE_LOCAL, places.NODE_PIDS, places.FAULTS):
        folder.mkdir(parents=True)
    places.HOME.chmod(0o700)


def give_nodes_the_packages() -> None:
    """Show the environment's packages as those of the Python that it was made of.

    That is the nodes' own, and what it has beside them stays away: nodes have torchmonarch as an
    image would have it. .pth files, with which the checkout installs itself, they do not see.
    """
    asks = "import site; print(site.getsitepackages()[0])"
    place = Path(run(os.path.realpath(sys.executable), "-c", asks).strip())
    place.mkdir(parents=True, exist_ok=True)
    _overlay(place, shown=packages_of_checkout())
    for file in place.glob("*.pth"):
        file.unlink()


def packages_of_checkout() -> Path:
    """Return the directory with the packages of the environment that runs this."""
    return Path(sysconfig.get_paths()["purelib"])


def empty_temporary_folders() -> None:
    """Cover /tmp and /dev/shm, but for the checkout, should it be there."""
    checkout = os.open(places.CHECKOUT, os.O_PATH)
    for place in TEMPORARY:
        _cover(place, "mode=1777")
    if not places.CHECKOUT.exists():
        places.CHECKOUT.mkdir(parents=True)
        # By its descriptor, and not by the name that this has, which is another folder's by now.
        mount(
            "--no-canonicalize",
            "--bind",
            f"/proc/{os.getpid()}/fd/{checkout}",
            str(places.CHECKOUT),
        )
    os.close(checkout)


def make_folders_on_disk() -> None:
    """Create the caches and an empty folder for this rig's logs."""
    places.UV_CACHE.mkdir(parents=True, exist_ok=True)
    places.LOGS = own_logs(places.LOGS)
    os.environ["RIG_LOGS"] = str(places.LOGS)


def own_logs(wanted: Path) -> Path:
    """Empty and return `wanted` or, while another living rig uses it, wanted-2 and so on."""
    for number in itertools.count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
        try:
            # Held until the rig's first process ends, however it does.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        for old in folder.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        return folder
    raise AssertionError("there is always another number")


def _cover(place: str, options: str) -> None:
    mount("-t", "tmpfs", "-o", options, "rig", place)


def _overlay(place: Path, shown: Path | None = None) -> None:
    beside = places.RUN / "over" / place.relative_to("/")
    upper, work = beside / "upper", beside / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    options = f"lowerdir={shown or place},upperdir={upper},workdir={work}"
    mount("-t", "overlay", "-o", options, "rig", str(place))
