"""The runner's side of the gateway's process on the head: starts it and sends it news."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

from monarch_client.runner.gateway.proxy_drivers import ProxySettings
from monarch_client.runner.gateway.settings import settings_of, write_settings
from monarch_client.runner.node_streams.node_streams import ensure_certificates
from monarch_client.runner.programs import environment
from monarch_client.runner.programs.runtime_files import extract_proxies
from monarch_client.runner.programs.side_process import SideProcess

if TYPE_CHECKING:
    from pathlib import Path

    from monarch_client.runner.place import Place


class GatewayProcess:
    """The process: starts once it is wanted and the job runs; ends with the attempt."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._is_wanted = place.config.gateway
        self._versions: tuple[str, str] | None = None
        self.process = SideProcess(
            place,
            "The process that connects laptops",
            "monarch_client.runner.gateway.head_process",
            self._write_settings,
        )

    def request(self) -> None:
        """Start it, now or once the job runs, since a program outside wants to connect."""
        self._is_wanted = True
        self._start()

    def open(self, python: str, torchmonarch: str) -> None:
        """Start it if it is wanted: the job runs, and its workers have these versions."""
        self._versions = (python, torchmonarch)
        self._start()

    def report_lost(self, rank: int) -> None:
        """Have laptops notified that the host of a rank is lost."""
        stdin = self.process.stdin
        if stdin is not None:
            # What is not read is lost with the process: a short line never fills the pipe.
            with contextlib.suppress(OSError):
                os.write(stdin, json.dumps({"lost": rank}).encode() + b"\n")

    def _start(self) -> None:
        if self._is_wanted and self._versions is not None:
            self.process.start()

    def _write_settings(self, file: Path) -> None:
        assert self._versions is not None  # noqa: S101 - for the type checker: `_start` has looked
        config = self._place.config
        python = environment.python_of(self._place)
        proxies = self._proxy_settings(python) if config.is_monarch else None
        certificates = ensure_certificates(self._place)
        settings = settings_of(config, python, self._versions, proxies, certificates)
        write_settings(file, settings)

    def _proxy_settings(self, python: str) -> ProxySettings:
        """Return how drivers of mesh proxies are started: as the job's driver is."""
        folder = self._place.folder
        extract_proxies(folder)
        env = environment.driver_environment(self._place)
        # The exception that ends the job's own driver is reported there, and no other.
        for variable in ("MPORTAL_REPORT_FILE", "MPORTAL_WATCH_FILE"):
            env.pop(variable, None)
        argv = [python, "-m", "mportal_proxies"]
        return ProxySettings(argv, env, str(folder.workdir), str(folder.state))
