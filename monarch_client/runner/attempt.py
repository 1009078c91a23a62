"""Rank 0's view of the whole attempt: moves every node from goal to goal, and judges its end.

All methods run on the main loop's thread.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from monarch_client.runner import node_state, verdicts
from monarch_client.runner.driver_report import read_report, verdict_of_driver
from monarch_client.runner.node_state import GOALS, NodeState

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.node import Node
    from monarch_client.runner.place import Place
    from monarch_client.runner.verdicts import Verdict, Where

# A driver's fault often is a worker's death, of which the word is still on its way.
_FAULT_WAITS_S = 1.5
# Beyond the grace time: killing what does not end, and the last frames of other ranks.
_LAST_FRAMES_S = 10.0
_STAGES = {"setup": "setup", "workers": "workers", "run": "run", "end": "teardown"}


class Attempt:
    """Begun once; `on_over` is called once, when the end frame has been recorded."""

    def __init__(self, place: Place, node: Node, on_over: Callable[[], None]) -> None:
        self.goal = GOALS[0]
        # Passes a goal on to the other ranks.
        self.ask_peers: Callable[[str], None] = lambda _goal: None
        self._place = place
        self._node = node
        self._on_over = on_over
        self._states: dict[int, NodeState] = {}
        self._gone: set[int] = set()
        self._verdict: Verdict | None = None
        self._is_over = False
        node.on_change = lambda: self.node_changed(place.rank, node.state)

    def begin(self) -> None:
        """Start the first goal everywhere, and the clock for ranks that have yet to join."""
        limit = self._place.config.timeouts.workers_s
        self._place.loop.call_later(limit, self._look_who_is_missing)
        self._pursue("setup")
        # What went wrong while the runner prepared itself shows in the first state.
        self.node_changed(self._place.rank, self._node.state)

    def end_after_crash(self) -> None:
        """This runner follows one that was killed: end what the other ranks still do."""
        with contextlib.suppress(OSError):
            self.goal = self._place.folder.goal.read_text()
        self._states = {rank: NodeState() for rank in self._place.config.ranks[1:]}
        self.end(verdicts.runner_lost(self._where(self._place.rank)))

    def node_changed(self, rank: int, state: NodeState) -> None:
        """A node has said how far it is. The same state may come any number of times."""
        self._states[rank] = state
        if self.goal == "end":
            self._finish_when_all_ended()
            return
        verdict = self._failure_of(rank, state) or self._outcome()
        if verdict is not None:
            self.end(verdict)
        elif self._is_reached():
            self._pursue(GOALS[GOALS.index(self.goal) + 1])

    def peer_is_silent(self, rank: int) -> None:
        """Nothing has been heard of a rank for too long."""
        if rank in self._gone or self._states.get(rank, NodeState()).ended:
            return
        self._gone.add(rank)
        seconds = self._place.config.timeouts.peer_silence_s
        what = f"nothing was heard from it for {seconds:g} s"
        self._record_loss(rank, what)
        if self.goal == "end":
            self._finish_when_all_ended()
        else:
            self.end(verdicts.worker_lost(self._where(rank), what, ""))

    def end(self, verdict: Verdict) -> None:
        """Stop everything everywhere. The first verdict stands."""
        if self._verdict is not None:
            return
        self._verdict = verdict
        self._end_stage(self.goal, ok=verdict.is_success, detail=verdict.message)
        limit = self._place.config.timeouts.grace_s + _LAST_FRAMES_S
        self._place.loop.call_later(limit, self._finish)
        self._begin_stage("end")

    def _pursue(self, goal: str) -> None:
        if goal != self.goal:
            self._end_stage(self.goal, ok=True, detail="")
        if goal == "run" and self._place.config.is_monarch:
            self._write_meshes()
        self._begin_stage(goal)

    def _begin_stage(self, goal: str) -> None:
        self.goal = goal
        self._place.folder.goal.write_text(goal)
        self._place.recorder.write(
            "stage", stage=_STAGES[goal], phase="begin", ok=True, detail=self._detail_of(goal)
        )
        self.ask_peers(goal)
        self._node.pursue(goal)

    def _end_stage(self, goal: str, *, ok: bool, detail: str) -> None:
        detail = "" if ok else detail[:500]
        self._place.recorder.write("stage", stage=_STAGES[goal], phase="end", ok=ok, detail=detail)

    def _detail_of(self, goal: str) -> str:
        config = self._place.config
        if goal == "setup" and not config.setup:
            return "nothing to set up"
        if goal == "workers" and not config.is_monarch:
            return "a plain job has no workers"
        return ""

    def _is_reached(self) -> bool:
        if any(rank not in self._states for rank in self._place.config.ranks):
            return False
        states = self._states.values()
        if self.goal == "setup":
            return all(state.setup == 0 for state in states)
        if self.goal == "workers":
            is_monarch = self._place.config.is_monarch
            return not is_monarch or all(state.worker == node_state.READY for state in states)
        return False

    def _failure_of(self, rank: int, state: NodeState) -> Verdict | None:
        """What is wrong with a node, if anything, whatever the driver says."""
        where, config = self._where(rank), self._place.config
        if state.stopped_by:
            return verdicts.stopped(state.stopped_by)
        if state.setup:
            return verdicts.setup_failed(where, state.setup, state.evidence)
        if state.setup_late:
            return verdicts.setup_too_slow(where, config.timeouts.setup_s, state.evidence)
        if state.worker == node_state.FAILED:
            return verdicts.worker_never_ready(where, config.port, state.worker_why, state.evidence)
        if state.worker == node_state.LOST:
            return _loss(where, state)
        return None

    def _outcome(self) -> Verdict | None:
        """How the users' programs ended, once that is known."""
        config = self._place.config
        if config.is_monarch:
            return self._mismatch() or self._outcome_of_driver()
        codes = [self._states[rank].run for rank in sorted(self._states)]
        for rank, state in sorted(self._states.items()):
            if state.run:
                return self._failed_command(rank, state)
        if len(codes) == len(config.ranks) and all(code == 0 for code in codes):
            return verdicts.completed()
        return None

    def _failed_command(self, rank: int, state: NodeState) -> Verdict:
        code = state.run or 0
        if state.oom:
            return verdicts.out_of_memory(self._where(rank), "The program", code, state.evidence)
        return verdicts.command_failed(self._where(rank), code, state.evidence)

    def _mismatch(self) -> Verdict | None:
        versions = {rank: state.python for rank, state in self._states.items() if state.python}
        return verdicts.workers_differ(versions) if len(set(versions.values())) > 1 else None

    def _outcome_of_driver(self) -> Verdict | None:
        state = self._node.state
        if state.run is None:
            return None
        if state.run == 0:
            return verdicts.completed()
        report = read_report(self._place.folder.report)
        verdict = verdict_of_driver(report, self._where(0), state.run, state.evidence)
        if verdict is None:
            return self._failed_command(0, state)
        if verdict.reason not in {"MONARCH", "WORKER_LOST"}:
            return verdict
        self._place.loop.call_later(_FAULT_WAITS_S, lambda: self.end(verdict))
        return None

    def _look_who_is_missing(self) -> None:
        limit = self._place.config.timeouts.workers_s
        for rank in self._place.config.ranks:
            if rank not in self._states and self.goal != "end":
                self._gone.add(rank)
                self._record_loss(rank, "it never reported to rank 0")
                self.end(verdicts.never_joined(self._where(rank), limit))

    def _finish_when_all_ended(self) -> None:
        waiting = [
            rank
            for rank in self._place.config.ranks
            if rank not in self._gone and rank in self._states and not self._states[rank].ended
        ]
        if not waiting:
            self._finish()

    def _finish(self) -> None:
        if self._is_over or self._verdict is None:
            return
        self._is_over = True
        self._end_stage("end", ok=True, detail="")
        frame = self._verdict.to_frame()
        self._place.folder.verdict.write_text(json.dumps(frame))
        self._place.recorder.write("end", **frame)
        self._on_over()

    def _write_meshes(self) -> None:
        """Tell the driver where its workers are."""
        config = self._place.config
        meshes = {
            mesh: [
                {
                    "rank": rank,
                    "address": config.worker_address(rank),
                    "python": self._states[rank].python,
                }
                for rank in ranks
            ]
            for mesh, ranks in config.ranks_of_meshes().items()
        }
        scheme = "tls" if config.tls else "tcp"
        content = {
            "meshes": meshes,
            "transport": f"{scheme}://{config.address_of(self._place.rank)}:0",
            "attach_timeout_s": config.timeouts.workers_s,
        }
        self._place.folder.meshes.write_text(json.dumps(content))

    def _record_loss(self, rank: int, what: str) -> None:
        config = self._place.config
        self._place.recorder.write(
            "worker",
            about=rank,
            status="LOST",
            address=config.address_of(rank),
            mesh=config.mesh_of(rank),
            pid=None,
            python="",
            exit_code=None,
            detail=what,
        )

    def _where(self, rank: int) -> Where:
        return verdicts.Where(rank, self._place.config.address_of(rank))


def _loss(where: Where, state: NodeState) -> Verdict:
    if state.oom:
        return verdicts.out_of_memory(where, "The worker", 137, state.evidence)
    return verdicts.worker_lost(where, state.worker_why, state.evidence)
