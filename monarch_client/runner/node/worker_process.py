"""The process of a node's Monarch worker: starts it, probes its port, and reports its end."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.base.processes import exit_code_of
from monarch_client.runner.programs import environment
from monarch_client.runner.vocabulary import node_state
from monarch_client.runner.vocabulary.verdicts import PORT_TAKEN, ended_with

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.processes import Command, OnPieces
    from monarch_client.runner.place import Place

_PROBE_S = 0.025
_PROBE_TIMEOUT_S = 1.0


class WorkerProcess:
    """A worker; calls `on_change` when `status` becomes ready, failed, lost or exited."""

    def __init__(self, place: Place, on_change: Callable[[], None]) -> None:
        self.status = node_state.STARTING
        self.why = ""
        self.python = ""
        self.torchmonarch = ""
        self.exit_code: int | None = None
        self._place = place
        self._on_change = on_change
        self._facts = place.folder.state / "worker.json"
        self._command: Command | None = None
        self._deadline = 0.0

    @property
    def pid(self) -> int | None:
        """The process id, once there is one."""
        return self._command.pid if self._command else None

    @property
    def evidence(self) -> str:
        """The last lines of its output."""
        return self._command.evidence if self._command else self.why

    def start(self, on_pieces: OnPieces) -> None:
        """Start the process and probe its port until it listens."""
        place = self._place
        self._deadline = time.monotonic() + place.config.timeouts.workers_s
        script = str(place.folder.state / "worker.py")
        address = place.config.worker_address(place.rank)
        env = environment.monarch_environment(place)
        python = environment.python_of(place)
        if self._listens():
            # The probe would take that program for the worker.
            self._become(node_state.FAILED, PORT_TAKEN)
            return
        try:
            self._command = place.children.start(
                [python, script, address, str(self._facts)],
                cwd=place.folder.workdir,
                env=env,
                on_pieces=on_pieces,
                on_exit=self._exited,
            )
        except OSError as error:
            self._become(node_state.FAILED, f"{python} cannot be started: {error}")
            return
        self._probe()

    def end_with_attempt(self) -> None:
        """Mark the worker as ended with the attempt: it is not lost, and has no exit code."""
        self.status, self.why, self.exit_code = node_state.EXITED, "ended with the attempt", None

    def _probe(self) -> None:
        if self.status != node_state.STARTING:
            return
        if self._listens():
            self.python, self.torchmonarch = _versions_in(self._facts)
            self._become(node_state.READY)
        elif time.monotonic() > self._deadline:
            limit = self._place.config.timeouts.workers_s
            self._become(node_state.FAILED, f"it accepted no connection within {limit:g} s")
        else:
            self._place.loop.call_later(_PROBE_S, self._probe)

    def _listens(self) -> bool:
        config = self._place.config
        address = (config.address_of(self._place.rank), config.port)
        try:
            socket.create_connection(address, _PROBE_TIMEOUT_S).close()
        except OSError:
            return False
        return True

    def _exited(self, returncode: int) -> None:
        self.exit_code = exit_code_of(returncode)
        if self.status == node_state.STARTING:
            self._become(node_state.FAILED, f"it {ended_with(self.exit_code)} first")
        elif self.status == node_state.READY:
            # A driver may shut its hosts down: the worker then returns 0, and nothing is wrong.
            status = node_state.LOST if self.exit_code else node_state.EXITED
            self._become(status, f"its process {ended_with(self.exit_code)}")

    def _become(self, status: str, why: str = "") -> None:
        self.status = status
        self.why = why
        self._on_change()


def _versions_in(facts: Path) -> tuple[str, str]:
    """Return the versions of Python and torchmonarch; "" where one is not known."""
    try:
        found = json.loads(facts.read_text())
        return str(found["python"]), str(found.get("torchmonarch", ""))
    except (OSError, ValueError, KeyError):
        return "", ""
