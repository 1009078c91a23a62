"""Find or install torchmonarch. Run as a script: `prepare_monarch.py VERSION FOLDER NOTE`.

If this interpreter lacks it, make an environment with that version in FOLDER, on top of this
interpreter's packages, and write its path to NOTE. Attempts and nodes share FOLDER.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import shutil
import site
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Iterator, TextIO

OLDEST = (3, 10)
# An installation takes minutes over a slow line; waiting longer costs more than a second one.
PATIENCE_S = 300.0
_LOOK_S = 0.2


def main(version: str, folder: str, note: str) -> int:
    """Ensure that there is a torchmonarch; 0 if so, else print the reason."""
    if _is_here():
        return 0
    python = "{}.{}".format(*sys.version_info[:2])
    if sys.version_info < OLDEST:
        _say(f"torchmonarch {version} needs Python 3.10 or newer; python3 is {python} here.")
        return 1
    # Nodes that share their home need not have the same Python.
    mark = hashlib.sha256(f"{sys.prefix}\0{sys.version}".encode()).hexdigest()[:8]
    venv = Path(folder) / f"{version}-py{python}-{mark}"
    venv.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A complete installation does not change: use it without the lock.
    if not _is_complete(venv):
        with _alone(venv.with_name(venv.name + ".lock")) as is_alone:
            if not is_alone:
                # Install into a private directory; later attempts use the shared one.
                venv = Path(note).with_name("monarch")
            if not _is_complete(venv):
                _say(f"No torchmonarch for {sys.executable}: installing {version} into {venv}")
                shutil.rmtree(str(venv), ignore_errors=True)
                if not _install(version, venv):
                    return 1
                (venv / "complete").touch()
    Path(note).write_text(str(venv))
    return 0


def _is_complete(venv: Path) -> bool:
    return (venv / "complete").exists()


def _is_here() -> bool:
    try:
        return importlib.util.find_spec("monarch.actor") is not None
    except (ImportError, ValueError):
        return False


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Lock the file for the block; False if another process keeps it for too long.

    Any process of this user can hold the lock, a hostile or a stopped one too.
    """
    with path.open("w") as lock:
        yield _lock_in_time(lock, path)


def _lock_in_time(lock: TextIO, path: Path) -> bool:
    if _try_lock(lock):
        return True
    _say(f"Waiting for another attempt that installs torchmonarch: {path} is locked.")
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        if _try_lock(lock):
            return True
    _say(f"{path} has been locked for {PATIENCE_S:g} s: not waiting any longer.")
    return False


def _try_lock(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Some shared file systems know no locks: then two may do the same work.
        return True
    return True


def _install(version: str, venv: Path) -> bool:
    # Without pip, which some systems cannot bring: that of this interpreter is seen from inside.
    if _call([sys.executable, "-m", "venv", "--without-pip", str(venv)]):
        _say(f"{sys.executable} cannot make an environment.")
        return False
    python = str(venv / "bin" / "python")
    _show_packages(venv)
    wanted = f"torchmonarch=={version}"
    if importlib.util.find_spec("pip") is not None:
        options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        return _call([python, "-m", "pip", "install", *options, wanted]) == 0
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path.home() / ".local/bin"))
    if uv is not None:
        return _call([uv, "pip", "install", "--python", python, wanted]) == 0
    _say(f"Neither pip nor uv is there to install {wanted}.")
    return False


def _show_packages(venv: Path) -> None:
    """Add this interpreter's packages, which the user's setup installed, to the environment."""
    paths = sysconfig.get_paths()
    folders = dict.fromkeys([paths["purelib"], paths["platlib"], *site.getsitepackages()])
    if site.ENABLE_USER_SITE:
        folders[site.getusersitepackages()] = None
    packages = next((venv / "lib").glob("python*")) / "site-packages"
    lines = [f"import site; site.addsitedir({place!r})\n" for place in folders]
    (packages / "mportal.pth").write_text("".join(lines))


def _call(argv: list[str]) -> int:
    return subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
