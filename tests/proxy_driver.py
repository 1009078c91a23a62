"""The driver of mesh proxies on this machine, beside real workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from monarch_client.runner import scripts
from monarch_client.runner.programs.environment import MONARCH_TUNING
from tests.monarch_workers import MonarchWorkers, tls_environment

CHECKOUT = Path(__file__).resolve().parents[1]


class ProxyDriver:
    """A driver for one session on the workers' mesh `trainers`.

    `address` is where clients connect.
    """

    def __init__(
        self, folder: Path, workers: MonarchWorkers, *options: str, listen: str = ""
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "driver.log"
        plan = {
            "meshes": {"trainers": [{"address": address} for address in workers.addresses]},
            "transport": transport_of(workers),
            "attach_timeout_s": 60,
        }
        (folder / "plan.json").write_text(json.dumps(plan))
        environment = driver_environment(workers)
        environment["MPORTAL_RUNTIME_FILE"] = str(folder / "plan.json")
        # A Unix socket's path must be short.
        listen = listen or f"unix:{os.path.relpath(folder / 'socket', CHECKOUT)}"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mportal_proxies", "--listen", listen, *options],
                cwd=CHECKOUT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        word, _, self.address = self.process.stdout.readline().decode().strip().partition(" ")
        assert word == "listening", self.log.read_text()

    def close(self) -> None:
        """Kill it. A repetition does nothing."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def transport_of(workers: MonarchWorkers) -> str:
    """Return where a driver beside the first worker listens for the others."""
    return f"{workers.scheme}://{workers.hosts[0]}:0"


def driver_environment(workers: MonarchWorkers) -> dict[str, str]:
    """Return the environment of a driver beside the first worker."""
    path = os.pathsep.join([str(Path(scripts.__file__).parent), str(CHECKOUT)])
    return {
        **os.environ,
        **MONARCH_TUNING,
        **tls_environment(workers.folder_of(0)),
        "PYTHONPATH": path,
    }
