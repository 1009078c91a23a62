"""One node's runner put together: rank 0 leads and pushes, the others follow rank 0."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from monarch_client.runner import node_state, runtime_files, verdicts
from monarch_client.runner.attempt import Attempt
from monarch_client.runner.certificates import CertificateError, mint_leaf
from monarch_client.runner.frames import Recorder
from monarch_client.runner.journal import Journal
from monarch_client.runner.loop import MainLoop
from monarch_client.runner.node import Node
from monarch_client.runner.place import Place
from monarch_client.runner.processes import Children, marked_processes, signal_all

if TYPE_CHECKING:
    from monarch_client.runner.config import AttemptConfig, NodeFolder

_RUNNER_DIED = "its runner was killed"


class Runner:
    """Lives as long as the attempt, and until all it recorded is acknowledged."""

    def __init__(self, config: AttemptConfig, rank: int, folder: NodeFolder) -> None:
        self._config = config
        self._rank = rank
        self._folder = folder
        self._loop = MainLoop()
        self._children = Children(self._loop)
        self._journal = Journal(folder.journal)
        recorder = Recorder(self._journal, rank)
        self._place = Place(config, rank, folder, self._loop, self._children, recorder)
        self._node = Node(self._place)
        self._is_lingering = False

    def run(self, *, is_restart: bool) -> int:
        """Carry the attempt to its end; 0 when it got there, however it ended.

        After a crash (`is_restart`, or the traces of a runner that is gone) nothing is started
        again: what was recorded is delivered, and the loss is told.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda n, _frame: self._loop.post(lambda: self._stop(n)))
        if self._has_died_before() or is_restart:
            self._mourn()
        else:
            self._prepare()
        if self._rank == 0:
            self._lead()
        else:
            self._follow()
        self._loop.run()
        return 0

    def _has_died_before(self) -> bool:
        mark = self._folder.state / "started"
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return True
        return False

    def _mourn(self) -> None:
        """Our predecessor died: end what it left, and say so in place of starting anything."""
        signal_all(marked_processes(self._folder.root), signal.SIGKILL)
        state = self._node.state
        state.setup, state.worker, state.worker_why = 0, node_state.LOST, _RUNNER_DIED

    def _prepare(self) -> None:
        runtime_files.extract(self._folder)
        if self._config.tls is None or not self._needs_certificate:
            return
        names = [self._config.address_of(self._rank), "127.0.0.1", "localhost"]
        try:
            mint_leaf(self._config.tls, names, self._folder.certificates, self._config.python)
        except CertificateError as error:
            state = self._node.state
            state.worker, state.worker_why = node_state.FAILED, str(error)

    @property
    def _needs_certificate(self) -> bool:
        return self._config.is_monarch or len(self._config.nodes) > 1

    def _lead(self) -> None:
        from monarch_client.runner.push import PortalConnection, PushCarrier

        self._carrier = PushCarrier(
            self._journal,
            PortalConnection(self._config),
            lambda: self._loop.post(self._loop.stop),
        )
        self._carrier.start()
        if self._folder.verdict.exists():
            self._attempt_is_over()
            return
        attempt = Attempt(self._place, self._node, self._attempt_is_over)
        if len(self._config.nodes) > 1:
            self._open_hub(attempt)
        attempt.begin()

    def _attempt_is_over(self) -> None:
        self._is_lingering = True
        self._carrier.finish()
        self._loop.call_later(self._config.linger_s, self._loop.stop)

    def _follow(self) -> None:
        raise NotImplementedError

    def _open_hub(self, attempt: Attempt) -> None:
        raise NotImplementedError

    def _stop(self, number: int) -> None:
        """Asked to end by a signal. While only waiting for acknowledgement: end at once."""
        if self._is_lingering:
            self._loop.stop()
            return
        self._node.stop(signal.Signals(number).name)
