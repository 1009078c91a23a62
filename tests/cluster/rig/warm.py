"""`python -m tests.cluster.rig.warm`: what nodes install, fetched and compiled once per checkout.

It runs on the machine itself, before any rig. Without it the rig works too: nodes then fetch
everything through the rig's proxy, in the middle of a launch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.cluster.rig import places

# As SkyPilot does it on a node of Slurm's.
EXTRAS = "slurm, remote"
BUILD = "from sky.backends import wheel_utils; print(wheel_utils.build_sky_wheel()[1])"


def main() -> None:
    # Whatever changes what a node installs has a stamp of its own.
    stamp = places.CACHE / f"warm-{version('skypilot')}-{sys.version_info.minor}"
    if stamp.exists():
        return
    sys.stdout.write("Fetching what SkyPilot installs on the rig's nodes (once: a minute) ...\n")
    sys.stdout.flush()
    wheel = build_wheel()
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        uv(
            "venv",
            "--quiet",
            "--seed",
            str(environment),
            "--python",
            os.path.realpath(sys.executable),
        )
        for wanted in ("setuptools<70", "click<8.3.0", f"{wheel}[{EXTRAS}]"):
            uv("pip", "install", "--quiet", "--python", str(environment), wanted)
    argv = [os.path.realpath(sys.executable), "-m", "compileall", "-q", "-j", "0"]
    # Some packages hold templates that only look like Python; the others are compiled all the same.
    subprocess.run([*argv, str(places.UV_CACHE)], stdout=subprocess.DEVNULL, check=False)
    stamp.touch()


def build_wheel() -> Path:
    """Build SkyPilot's package as its server would bring it to nodes."""
    home = places.WHEELS.parents[1]
    home.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", BUILD],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    folder = places.WHEELS / done.stdout.split()[-1]
    return next(folder.glob("*.whl"))


def uv(*arguments: str) -> None:
    environment = {**os.environ, "UV_CACHE_DIR": str(places.UV_CACHE), "UV_SYSTEM_CERTS": "1"}
    subprocess.run([str(places.UV), *arguments], env=environment, check=True)


if __name__ == "__main__":
    main()
