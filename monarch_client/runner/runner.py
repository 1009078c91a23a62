"""The runner of one node: rank 0 leads the attempt and delivers frames, the others follow it."""

from __future__ import annotations

import functools
import os
import signal
from typing import TYPE_CHECKING

from monarch_client.runner.attempt.attempt import Attempt
from monarch_client.runner.base.certificates import CertificateError, ensure_leaf
from monarch_client.runner.base.first_signals import END_SIGNALS, take_signals
from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.base.process_tree import marked_processes, signal_all
from monarch_client.runner.base.processes import Children
from monarch_client.runner.base.small_files import write_note
from monarch_client.runner.delivery.carriers import carrier_of
from monarch_client.runner.delivery.push import Callbacks
from monarch_client.runner.gateway.gateway_process import GatewayProcess
from monarch_client.runner.journal.journal import Journal
from monarch_client.runner.journal.recorder import Recorder
from monarch_client.runner.journal.samples import Samples
from monarch_client.runner.mesh.watch import MeshWatch
from monarch_client.runner.node.node import Node
from monarch_client.runner.node_streams.node_streams import NodeStreams
from monarch_client.runner.place import Place
from monarch_client.runner.probes.sampler import Sampler
from monarch_client.runner.probes.stack_dumps import StackDumps
from monarch_client.runner.probes.task_reports import TaskReports
from monarch_client.runner.programs import runtime_files
from monarch_client.runner.programs.shell import write_scripts

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.config import AttemptConfig, NodeFolder
    from monarch_client.runner.delivery.carriers import Carrier
    from monarch_client.runner.peers.link import Link
    from monarch_client.runner.vocabulary.stack_requests import StackRequest

# Seconds that a peer with a stop request waits for rank 0 to end the attempt.
_REPLY_S = 3.0


class Runner:
    """The runner of a node, from the attempt's begin until all its frames are acknowledged."""

    def __init__(self, config: AttemptConfig, rank: int, folder: NodeFolder) -> None:
        self._config = config
        self._rank = rank
        self._folder = folder
        self._loop = MainLoop()
        self._children = Children(self._loop)
        self._journal = Journal(folder.journal)
        recorder = Recorder(self._journal, rank)
        self._place = Place(config, rank, folder, self._loop, self._children, recorder, Samples())
        self._sampler = Sampler(self._place)
        self._mesh_watch = MeshWatch(self._place)
        self._tasks = TaskReports(self._place)
        self._gateway = GatewayProcess(self._place)
        self._streams = NodeStreams(self._place)
        self._stacks = StackDumps(self._place)
        own = (self._mesh_watch.admin_process, self._gateway.process, self._streams.process)
        self._stacks.leave_out = lambda: [process.pid for process in own]
        # Sends requests for stack dumps to the other ranks.
        self._request_peers_stacks: Callable[[list[StackRequest]], None] = lambda _requests: None
        self._node = Node(self._place)
        for process in own:
            process.on_out_of_memory = self._node.ignore_oom_kill
        self._node.on_set_up = self._streams.open
        # Has the other ranks serve their streams.
        self._request_peers_streams: Callable[[], None] = lambda: None
        self._attempt: Attempt | None = None
        self._is_lingering = False

    def run(self, *, is_restart: bool) -> int:
        """Run the attempt to its end; 0 however the attempt ended.

        After a crash of the runner (`is_restart`, or traces of an earlier one) nothing is started
        again: recorded frames are delivered, and the loss is reported.
        """
        for number in END_SIGNALS:
            signal.signal(number, lambda n, _frame: self._loop.post(lambda: self._stop(n)))
        take_signals()
        is_after_crash = self._has_died_before() or is_restart
        if is_after_crash:
            signal_all(marked_processes(self._folder.root), signal.SIGKILL)
        else:
            runtime_files.extract(self._folder)
            write_scripts(self._config, self._folder)
            self._sampler.start()
            self._tasks.start()
        self._mint()
        if self._rank == 0:
            self._lead(is_after_crash=is_after_crash)
        else:
            self._follow(is_after_crash=is_after_crash)
        self._loop.run()
        return 0

    def _has_died_before(self) -> bool:
        try:
            os.close(os.open(self._folder.state / "started", os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return True
        return False

    def _mint(self) -> None:
        if self._config.tls is None or not (self._config.is_monarch or self._has_peers):
            return
        address = self._config.address_of(self._rank)
        try:
            ensure_leaf(self._config.tls, address, self._folder.certificates, self._config.python)
        except CertificateError as error:
            self._node.give_up(str(error))

    @property
    def _has_peers(self) -> bool:
        return len(self._config.nodes) > 1

    def _lead(self, *, is_after_crash: bool) -> None:
        callbacks = Callbacks(
            on_drained=lambda: self._loop.post(self._loop.stop),
            on_closed=lambda: self._loop.post(self._close),
            on_stop=lambda grace_s: self._loop.post(lambda: self._stop_requested(grace_s)),
            on_stacks=lambda requests: self._loop.post(lambda: self._stacks_requested(requests)),
            on_gateway=lambda: self._loop.post(self._gateway_requested),
        )
        carrier = carrier_of(self._place, self._journal, callbacks)
        carrier.start()
        on_over = functools.partial(self._linger, carrier)
        if self._folder.verdict.exists():
            on_over()
            return
        attempt = self._attempt = Attempt(self._place, self._node, on_over)
        if self._has_peers:
            self._open_hub(attempt)
        if is_after_crash:
            attempt.end_after_crash()
        else:
            self._mesh_watch.has_ended = attempt.has_worker_ended
            self._mesh_watch.has_proc_ended = attempt.has_proc_ended
            self._mesh_watch.start()
            attempt.on_run = self._admit_laptops
            attempt.on_last = self._report_last
            attempt.on_lost = self._gateway.report_lost
            attempt.begin()

    def _admit_laptops(self, python: str, torchmonarch: str) -> None:
        """Admit laptops to the workers, which have these versions of Python and torchmonarch."""
        if self._config.waits_for_laptops:
            # There is no driver that requests a watch over its meshes.
            write_note(self._folder.watch, "")
        self._gateway.open(python, torchmonarch)

    def _report_last(self) -> None:
        self._tasks.look_last()
        self._mesh_watch.report_last()

    def _linger(self, carrier: Carrier) -> None:
        """Wait after the end frame until it is acknowledged, or `linger_s` is over."""
        self._is_lingering = True
        self._sampler.stop()
        self._mesh_watch.stop()
        self._tasks.stop()
        self._stacks.stop()
        carrier.finish()
        self._loop.call_later(self._config.linger_s, self._loop.stop)

    def _open_hub(self, attempt: Attempt) -> None:
        # Only attempts of several nodes pay for importing asyncio and ssl.
        from monarch_client.runner.peers.hub import Hub  # noqa: PLC0415

        hub = Hub(self._place, self._journal, attempt)
        try:
            hub.open()
            attempt.send_goal, attempt.is_cut_off = hub.send_goal, hub.is_cut_off
            self._request_peers_stacks = hub.request_stacks
            self._request_peers_streams = hub.request_streams
        except (OSError, ValueError) as error:
            where = f"{self._config.address_of(0)}:{self._config.hub_port}"
            self._node.give_up(f"rank 0 cannot listen for the others on {where}: {error}")

    def _follow(self, *, is_after_crash: bool) -> None:
        from monarch_client.runner.peers.link import Link  # noqa: PLC0415

        link = Link(self._place, self._journal)
        link.on_goal = self._node.pursue
        link.on_stacks = self._stacks.request
        link.on_streams = self._streams.request
        link.on_delivered = self._loop.stop
        link.on_lost = self._end_alone
        self._node.on_change = lambda: self._report_to(link)
        link.start()
        if is_after_crash:
            self._node.mark_lost("its runner was killed")

    def _report_to(self, link: Link) -> None:
        """Report the node's state; with its last one, the latest of its task contexts."""
        if self._node.state.ended:
            self._tasks.look_last()
        link.update(self._node.state)

    def _end_alone(self) -> None:
        """End this node's programs and exit, since rank 0 is lost."""
        if self._node.state.ended:
            self._loop.stop()
            return
        self._is_lingering = True
        self._node.on_change = lambda: self._loop.stop() if self._node.state.ended else None
        self._node.pursue("end")

    def _stop(self, number: int) -> None:
        """End on a signal; at once if only an acknowledgment is missing."""
        if self._is_lingering:
            self._loop.stop()
            return
        self._node.stop(signal.Signals(number).name)
        if self._rank != 0:
            self._loop.call_later(_REPLY_S, self._end_without_reply)

    def _stop_requested(self, grace_s: float) -> None:
        """End the attempt at the portal's request, which still takes its last frames."""
        if not self._is_lingering and self._attempt is not None:
            self._attempt.grace_s = grace_s
            self._node.stop("the portal")

    def _stacks_requested(self, requests: list[StackRequest]) -> None:
        self._stacks.request([request for request in requests if request.rank == self._rank])
        self._request_peers_stacks(requests)

    def _gateway_requested(self) -> None:
        self._streams.request()
        self._request_peers_streams()
        self._gateway.request()

    def _close(self) -> None:
        """End what still runs here, since the portal has closed the attempt."""
        if not self._is_lingering:
            self._node.stop("the portal, which has closed this attempt")

    def _end_without_reply(self) -> None:
        """End alone if rank 0 has not answered this node's stop report: it may be lost."""
        if not self._node.is_ending:
            self._end_alone()
