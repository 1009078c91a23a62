"""A node of an attempt: pursues the goals that rank 0 sets, and reports its state.

All methods run on the main loop's thread.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from monarch_client.crash_points import reach
from monarch_client.runner.base.memory_pressure import oom_kills
from monarch_client.runner.base.processes import exit_code_of, signal_of
from monarch_client.runner.node.preparation import Preparation
from monarch_client.runner.node.worker_process import WorkerProcess
from monarch_client.runner.node.worker_procs import WorkerProcs
from monarch_client.runner.programs import environment
from monarch_client.runner.programs.shell import RUN, start_shell
from monarch_client.runner.vocabulary import frames, node_state, worker_states
from monarch_client.runner.vocabulary.node_state import GOALS, NodeState

if TYPE_CHECKING:
    from typing import Any, Callable

    from monarch_client.runner.base.processes import Command
    from monarch_client.runner.place import Place

_SIGKILL_CODE = 137
_FRAME_STATUS = {
    node_state.READY: worker_states.READY,
    node_state.FAILED: worker_states.EXITED,
    node_state.LOST: worker_states.LOST,
    node_state.EXITED: worker_states.EXITED,
}


class Node:
    """A node; calls `on_change` whenever `state` changes."""

    def __init__(self, place: Place) -> None:
        self.state = NodeState()
        self.on_change: Callable[[], None] = lambda: None
        # Called once all nodes are set up, before the worker of this one starts.
        self.on_set_up: Callable[[], None] = lambda: None
        self._place = place
        # Seconds that users' programs have to end.
        self._grace_s = place.config.timeouts.grace_s
        self._goal = -1
        self._worker = WorkerProcess(place, self._worker_changed)
        self._preparation = Preparation(place, lambda found: self._update(**found))
        self._procs = WorkerProcs(place.loop, lambda: self._worker.pid)
        self._procs.on_gone = self._procs_gone
        self._command: Command | None = None
        self._oom_kills = oom_kills()
        self._steps = {
            "setup": self._set_up,
            "workers": self._start_worker,
            "run": self._run,
            "end": self._end,
        }

    def pursue(self, goal: str, grace_s: float | None = None) -> None:
        """Begin to work towards `goal`. A goal already passed is ignored.

        `grace_s`: the seconds that users' programs have to end; default: the configured ones.
        """
        if grace_s is not None:
            self._grace_s = grace_s
        wanted = GOALS.index(goal)
        if wanted > self._goal:
            self._goal = wanted
            self._steps[goal]()

    def give_up(self, why: str) -> None:
        """Mark this node as failed, for the next report."""
        self.state.worker, self.state.worker_why = node_state.FAILED, why

    def mark_lost(self, why: str) -> None:
        """Mark this node as lost: its processes are dead, and only the end may still be pursued."""
        self._goal = GOALS.index("end") - 1
        self._update(setup=0, worker=node_state.LOST, worker_why=why)

    def stop(self, signal_name: str) -> None:
        """Report a stop from outside: rank 0 then ends the attempt on all nodes."""
        self.state.stopped_by = signal_name
        self.on_change()

    @property
    def is_ending(self) -> bool:
        """Whether the programs here are being ended, or have ended."""
        return self._goal == GOALS.index("end")

    def _set_up(self) -> None:
        reach("runner.setup")
        self._report(worker_states.SETTING_UP)
        if self._place.config.setup:
            limit = self._place.config.timeouts.setup_s
            self._place.loop.call_later(limit, self._setup_is_late)
        self._preparation.begin()

    def _setup_is_late(self) -> None:
        if self.state.setup is None:
            self._update(setup_late=True, evidence=self._preparation.evidence)

    def _start_worker(self) -> None:
        self.on_set_up()
        if self._place.config.is_monarch:
            reach("runner.workers")
            self._worker.start(self._place.recorder.write_lines)
        else:
            self.on_change()

    def _worker_changed(self) -> None:
        worker = self._worker
        if worker.status == node_state.READY:
            self._procs.start()
        else:
            self._procs.stop()
        if self.is_ending and worker.status == node_state.LOST:
            worker.end_with_attempt()
        self._report(_FRAME_STATUS[worker.status], detail=worker.why)
        self._update(
            worker=worker.status,
            worker_why=worker.why,
            worker_exit=worker.exit_code,
            python=worker.python,
            torchmonarch=worker.torchmonarch,
            oom=self._was_oom(worker.exit_code),
            evidence=worker.evidence,
        )

    def _procs_gone(self) -> None:
        kills = max(0, oom_kills() - self._oom_kills)
        procs = self._procs
        self._update(procs_gone=procs.gone, gone_names=procs.gone_names, oom_kills=kills)

    def _run(self) -> None:
        config = self._place.config
        if config.is_monarch and (self._place.rank != 0 or not config.has_driver):
            self._report(worker_states.RUNNING)
            return
        if config.is_monarch:
            env = environment.driver_environment(self._place)
        else:
            env = environment.run_environment(self._place)
        reach("runner.run")
        write_lines = self._place.recorder.write_lines
        self._command = start_shell(self._place, RUN, env, write_lines, self._run_ended)
        self._report(worker_states.RUNNING)

    def _run_ended(self, returncode: int) -> None:
        reach("runner.exited")
        exit_code = exit_code_of(returncode)
        fields: dict[str, Any] = {"exit_code": exit_code}
        if signal_of(exit_code) is not None:
            fields["signal"] = signal_of(exit_code)
        self._place.recorder.write(frames.EXIT, **fields)
        if not self._place.config.is_monarch:
            self._report(worker_states.EXITED, exit_code=exit_code)
        self._update(
            run=exit_code,
            run_signalled=returncode < 0,
            oom=self._was_oom(exit_code),
            evidence=self._evidence(),
        )

    def _end(self) -> None:
        reach("runner.ending")
        self._procs.stop()
        self._preparation.cancel()
        self._place.children.end_all(self._grace_s, self._ended)

    def _ended(self) -> None:
        self._update(ended=True)

    def _evidence(self) -> str:
        return self._command.evidence if self._command else ""

    def _was_oom(self, exit_code: int | None) -> bool:
        return exit_code == _SIGKILL_CODE and oom_kills() > self._oom_kills

    def ignore_oom_kill(self) -> None:
        """Ignore a kill for lack of memory whose victim was no process of the user."""
        self._oom_kills += 1

    def _report(self, status: str, *, exit_code: int | None = None, detail: str = "") -> None:
        config, rank = self._place.config, self._place.rank
        address = config.address_of(rank)
        command = self._worker if config.is_monarch else self._command
        self._place.recorder.write(
            frames.WORKER,
            status=status,
            host=socket.gethostname(),
            address=f"{address}:{config.port}" if config.is_monarch else address,
            mesh=config.mesh_of(rank),
            pid=command.pid if command else None,
            python=self._worker.python,
            exit_code=self._worker.exit_code if config.is_monarch else exit_code,
            detail=detail[:500],
        )

    def _update(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self.state, name, value)
        self.on_change()
