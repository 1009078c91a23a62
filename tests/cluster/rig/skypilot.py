"""SkyPilot's side: a home's configuration for the rig, and an API server without a portal."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import yaml

from tests.cluster.rig import daemons, mounts, places
from tests.waiting import eventually

START_S = 90
SLURM_CLUSTER = "rig"
HOST = """\
Host {cluster}
  HostName 127.0.0.1
  Port {port}
  User root
  IdentityFile {key}
  IdentitiesOnly yes
"""
# SkyPilot fetches this list of GPU names from the network. An existing file is left alone.
GPU_NAMES = 'AcceleratorName,Clouds\nH100,"[slurm,rig]"\nA100,"[aws,gcp]"\n'
OF_CLIENT = {"SKYPILOT_API_SERVER_ENDPOINT", "SKYPILOT_DISABLE_LOCAL_API_SERVER"}
# SkyPilot would first check the credentials of every other cloud, which is slow. In Slurm's queue
# a cluster waits for a day unless SkyPilot knows when to look elsewhere.
CONFIGURATION = {"allowed_clouds": ["slurm", "rig"], "slurm": {"provision_timeout": 60}}
COLOR = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
SITE = Path(__file__).with_name("site")


def install_cloud() -> None:
    """Put the rig's cloud beside SkyPilot, in the rig's own view of the environment."""
    packages = mounts.packages_of_checkout()
    for file in SITE.iterdir():
        if file.suffix in {".py", ".pth"}:
            shutil.copy(file, packages)


def prepare_home(home: Path) -> None:
    """Make SkyPilot find the rig when it runs with `home` as HOME. A repetition does nothing."""
    slurm = home / ".slurm"
    slurm.mkdir(parents=True, exist_ok=True)
    (slurm / "config").write_text(
        HOST.format(cluster=SLURM_CLUSTER, port=places.SSH_PORT, key=places.LOGIN_KEY)
    )
    prepare_catalogue(home)


def prepare_catalogue(home: Path) -> None:
    """Put the names of GPUs where SkyPilot would keep what it fetches from the network."""
    names = home / ".sky" / "catalogs" / "v8" / "common"
    names.mkdir(parents=True, exist_ok=True)
    (names / "accelerators.csv").write_text(GPU_NAMES)
    wheels = home / ".sky" / "wheels"
    if places.WHEELS.exists() and not wheels.exists():
        # Copied now, it is newer than SkyPilot itself: the server does not build it again.
        shutil.copytree(places.WHEELS, wheels, copy_function=shutil.copyfile)


class SkyPilotServer:
    """An API server on a home of its own, with the rig's cloud. `close` ends all of it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The value of SKYPILOT_API_SERVER_ENDPOINT for this server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a client of this server, including `sky` on the command line."""
        return {
            **daemons.ENVIRONMENT,
            "PATH": f"{Path(sys.executable).parent}:{daemons.ENVIRONMENT['PATH']}",
            "HOME": str(self.home),
            "SKYPILOT_API_SERVER_ENDPOINT": self.url,
            "SKYPILOT_DISABLE_LOCAL_API_SERVER": "1",
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        }

    def start(self) -> None:
        """Start it and wait until it answers."""
        prepare_home(self.home)
        check = {"class": "rig_plugins.NetCheck", "parameters": {"url": f"{self.url}/api/health"}}
        (self.home / ".sky" / "config.yaml").write_text(yaml.safe_dump(CONFIGURATION))
        plugins = self.home / ".sky" / "plugins.yaml"
        plugins.write_text(yaml.safe_dump({"plugins": [check]}))
        others = {name: value for name, value in self.environment.items() if name not in OF_CLIENT}
        listening = ["--host=127.0.0.1", f"--port={self.port}"]
        self._process = daemons.start(
            *[sys.executable, "-m", "sky.server.server", *listening],
            log="skypilot-server",
            **others,
            SKYPILOT_API_SERVER_LOCAL_PORT=str(self.port),
            IS_SKYPILOT_SERVER="true",
        )
        daemons.await_condition("SkyPilot's server", self._is_healthy, timeout_s=START_S)

    def close(self) -> None:
        """End it and all processes that it started."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            eventually(lambda: self._process.poll() is not None, timeout_s=5)

    def sky(self, *arguments: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        """Run `sky ...` as a client of this server; its output has no colors."""
        done = subprocess.run(
            [str(Path(sys.executable).with_name("sky")), *arguments],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        done.stdout = COLOR.sub("", done.stdout)
        return done

    def _is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/health", timeout=5).is_success
        except httpx.TransportError:
            return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
