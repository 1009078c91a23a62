"""Install the packages of a lock file with pip, and show how far it is.

    .venv/bin/python deploy/install_packages.py requirements.lock

On a terminal one line counts packages and bytes; elsewhere each hundred packages are a line. pip's
errors are printed as they are.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

LOCKED = re.compile(r"^[\w.-]+(?:\[[\w,-]+\])?==", re.MULTILINE)
PACKAGE = re.compile(r"(?:Collecting|Processing) .*\(from -r ")
SIZE = re.compile(r"  (?:Downloading|Using cached) .*\(([\d.]+) (kB|MB|GB|bytes)\)")
BYTES = {"bytes": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
INSTALLING = "Installing collected packages"
STEP = 100


def install(lock: Path) -> int:
    """Install what the lock file names beside this interpreter; return pip's exit code."""
    total = len(LOCKED.findall(lock.read_text(encoding="utf-8")))
    command = [sys.executable, "-m", "pip", "install", "--progress-bar", "off", "--require-hashes"]
    packages = downloaded = 0
    with subprocess.Popen([*command, "-r", str(lock)], stdout=subprocess.PIPE, text=True) as pip:
        for line in pip.stdout or ():
            if size := SIZE.match(line):
                downloaded += int(float(size[1]) * BYTES[size[2]])
            elif PACKAGE.match(line):
                packages += 1
                _show(f"{packages} of {total} packages, {downloaded / 1e6:.0f} MB", packages)
            elif line.startswith(INSTALLING):
                _show(f"{packages} of {total} packages, {downloaded / 1e6:.0f} MB; unpacking", STEP)
    if sys.stdout.isatty():
        sys.stdout.write("\n")
    return pip.returncode


def _show(progress: str, count: int) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\033[K  {progress}")
    elif count % STEP == 0:
        sys.stdout.write(f"  {progress}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1])))
