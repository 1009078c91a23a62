"""The runner's side of the process that serves this node's streams."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from monarch_client.runner.base.certificates import CertificateError, ensure_leaf
from monarch_client.runner.base.small_files import write_private
from monarch_client.runner.code_sync.keeping import PortalAddress
from monarch_client.runner.code_sync.node_code import CodeSettings
from monarch_client.runner.node_streams.settings import (
    ShellSettings,
    StreamSettings,
    write_settings,
)
from monarch_client.runner.programs import environment
from monarch_client.runner.programs.side_process import SideProcess

if TYPE_CHECKING:
    from pathlib import Path

    from monarch_client.runner.place import Place


class NodeStreams:
    """The process: starts once it is wanted and this node is set up; ends with the attempt."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._is_wanted = place.config.gateway
        self._is_set_up = False
        self.process = SideProcess(
            place,
            "The process that serves shells and forwarded ports",
            "monarch_client.runner.node_streams.stream_process",
            self._write_settings,
        )

    def request(self) -> None:
        """Start it, now or once this node is set up, since a program outside wants to connect."""
        self._is_wanted = True
        self._start()

    def open(self) -> None:
        """Start it if it is wanted: this node is set up."""
        self._is_set_up = True
        self._start()

    def _start(self) -> None:
        # Without certificates there is nothing that tells callers from strangers.
        if self._is_wanted and self._is_set_up and self._place.config.tls is not None:
            self.process.start()

    def _write_settings(self, file: Path) -> None:
        place = self._place
        config, certificates = place.config, ensure_certificates(place)
        addresses = [node.address for node in config.nodes]
        code = CodeSettings(
            place.rank,
            len(addresses),
            str(place.folder.code),
            str(place.folder.workdir),
            PortalAddress(config.portal_url, config.portal_file, config.token, config.attempt_id),
        )
        settings = StreamSettings(
            place.rank,
            addresses,
            config.node_port,
            str(certificates),
            code,
            self._shell_settings(),
        )
        write_settings(file, settings)

    def _shell_settings(self) -> ShellSettings:
        place = self._place
        env = environment.shell_environment(place)
        # The link, which bash keeps in place of the generation of code that it leads to.
        env["PWD"] = str(place.folder.workdir)
        # The user's own file may put another interpreter in front.
        first = shlex.quote(env["PATH"].partition(os.pathsep)[0])
        prompt = f"[job {place.config.job_id} node {place.rank}] \\w\\$ "
        lines = [
            "[ -f ~/.bashrc ] && . ~/.bashrc",
            f"PATH={first}:$PATH",
            f"PS1={shlex.quote(prompt)}",
        ]
        startup_file = place.folder.script("shell")
        write_private(startup_file, "\n".join([*lines, ""]))
        return ShellSettings(str(place.folder.workdir), env, str(startup_file))


def ensure_certificates(place: Place) -> Path:
    """Mint the certificate of this node if it has none; return its folder. OSError."""
    config, certificates = place.config, place.folder.certificates
    if config.tls is not None:
        try:
            ensure_leaf(config.tls, config.address_of(place.rank), certificates, config.python)
        except CertificateError as error:
            raise OSError(str(error)) from error
    return certificates
