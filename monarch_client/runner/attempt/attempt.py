"""The attempt as a whole, on rank 0: sets one goal after another for all nodes, until a verdict.

All methods run on the main loop's thread.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from monarch_client.crash_points import reach
from monarch_client.runner.attempt import judgement
from monarch_client.runner.base.small_files import write_note
from monarch_client.runner.programs import driver_plan
from monarch_client.runner.vocabulary import frames, node_state, stages, verdicts, worker_states
from monarch_client.runner.vocabulary.node_state import GOALS, NodeState

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.node.node import Node
    from monarch_client.runner.place import Place
    from monarch_client.runner.vocabulary.verdicts import Verdict

# A driver's fault is often caused by a lost worker whose report has not arrived yet.
_FAULT_WAITS_S = 1.5
# Beyond the grace time: killing what does not end, and the last frames of other ranks.
_LAST_FRAMES_S = 10.0
_STAGES = {
    "setup": stages.SETUP,
    "workers": stages.WORKERS,
    "run": stages.RUN,
    "end": stages.TEARDOWN,
}


class Attempt:
    """The attempt as rank 0 drives it; calls `on_over` once the end frame is recorded."""

    def __init__(self, place: Place, node: Node, on_over: Callable[[], None]) -> None:
        self.goal = GOALS[0]
        # Seconds that users' programs have to end; a stop request may change it.
        self.grace_s = place.config.timeouts.grace_s
        # Sends a goal to the other ranks.
        self.send_goal: Callable[[str], None] = lambda _goal: None
        # Called before `run` starts, with the versions of Python and torchmonarch of the workers;
        # they are empty in a plain job.
        self.on_run: Callable[[str, str], None] = lambda _python, _torchmonarch: None
        # Called with the rank of a host that is lost, before the attempt ends by it.
        self.on_lost: Callable[[int], None] = lambda _rank: None
        # Whether another rank has lost its connection: it may be what fails the others.
        self.is_cut_off: Callable[[], bool] = lambda: False
        # Called before the last frame.
        self.on_last: Callable[[], None] = lambda: None
        self._place = place
        self._node = node
        self._on_over = on_over
        self._states: dict[int, NodeState] = {}
        self._lost: set[int] = set()
        self._verdict: Verdict | None = None
        self._is_over = False
        node.on_change = lambda: self.node_changed(place.rank, node.state)

    def begin(self) -> None:
        """Start the first goal everywhere, and the clock for ranks that have yet to join."""
        limit = self._place.config.timeouts.workers_s
        self._place.loop.call_later(limit, self._end_if_ranks_are_missing)
        self._pursue("setup")
        # The first state reports an error from the preparation of the runner.
        self.node_changed(self._place.rank, self._node.state)

    def end_after_crash(self) -> None:
        """End the attempt on all ranks, after the runner of this node was killed."""
        with contextlib.suppress(OSError, ValueError):
            self.goal = GOALS[GOALS.index(self._place.folder.goal.read_text())]
        self._states = {rank: NodeState() for rank in self._place.config.ranks[1:]}
        self.end(verdicts.runner_lost(judgement.where(self._place.config, self._place.rank)))

    def node_changed(self, rank: int, state: NodeState) -> None:
        """Act on the reported state of a node. Repeated reports of one state change nothing."""
        self._states[rank] = state
        if self.goal == "end":
            self._finish_when_all_ended()
            return
        config, report = self._place.config, self._place.folder.report
        failure = judgement.failure_of_node(config, rank, state)
        outcome = judgement.outcome_of_job(config, self._states, report)
        if failure is not None:
            if state.worker == node_state.LOST:
                self.on_lost(rank)
            self.end(failure)
        elif outcome is not None:
            self._end_soon(outcome)
        elif self._is_reached():
            self._pursue(GOALS[GOALS.index(self.goal) + 1])

    def peer_is_silent(self, rank: int) -> None:
        """Record the loss of a rank that has been silent for too long, and end the attempt."""
        if rank in self._lost or self._states.get(rank, NodeState()).ended:
            return
        self._lost.add(rank)
        seconds = self._place.config.timeouts.peer_silence_s
        what = f"nothing was heard from it for {seconds:g} s"
        self._record_loss(rank, what)
        self.on_lost(rank)
        if self.goal == "end":
            self._finish_when_all_ended()
        else:
            self.end(verdicts.worker_lost(judgement.where(self._place.config, rank), what, ""))

    def has_worker_ended(self, rank: int) -> bool:
        """Whether the driver has shut down the worker of `rank`. Safe from any thread."""
        return self._states.get(rank, NodeState()).worker == node_state.EXITED

    def has_proc_ended(self, rank: int | None, name: str) -> bool:
        """Whether a node has reported that the process of a proc exited. Safe from any thread."""
        state = None if rank is None else self._states.get(rank)
        return state is not None and state.has_proc_ended(name)

    def end(self, verdict: Verdict) -> None:
        """Stop all programs on all nodes. Only the first verdict counts."""
        if self._verdict is not None:
            return
        if verdict.crash:
            verdict = verdict._replace(crash=f"{verdict.crash} (stage {_STAGES[self.goal]})")
        self._verdict = verdict
        detail = "" if verdict.is_success else verdict.message
        self._end_stage(self.goal, ok=verdict.is_success, detail=detail)
        limit = self.grace_s + _LAST_FRAMES_S
        self._place.loop.call_later(limit, self._finish)
        self._begin_stage("end")

    def _end_soon(self, verdict: Verdict) -> None:
        may_be_a_loss = judgement.may_be_a_loss(self._place.folder.report) or self.is_cut_off()
        if not verdict.is_success and may_be_a_loss:
            self._place.loop.call_later(_FAULT_WAITS_S, lambda: self._end_by_fault(verdict))
        else:
            self.end(verdict)

    def _end_by_fault(self, verdict: Verdict) -> None:
        # Meanwhile a node may have reported which of its procs has ended.
        place = self._place
        latest = judgement.outcome_of_job(place.config, self._states, place.folder.report)
        self.end(latest or verdict)

    def _pursue(self, goal: str) -> None:
        if goal != self.goal:
            detail = self._skip_reason() if self.goal == "setup" else ""
            self._end_stage(self.goal, ok=True, detail=detail)
        if goal == "run":
            if self._place.config.is_monarch:
                self._write_meshes()
            head = self._states[self._place.rank]
            self.on_run(head.python, head.torchmonarch)
        self._begin_stage(goal)

    def _begin_stage(self, goal: str) -> None:
        self.goal = goal
        write_note(self._place.folder.goal, goal)
        self._place.recorder.write(
            frames.STAGE,
            stage=_STAGES[goal],
            phase=stages.BEGIN,
            ok=True,
            detail=self._detail_of(goal),
        )
        self.send_goal(goal)
        self._node.pursue(goal, self.grace_s)

    def _end_stage(self, goal: str, *, ok: bool, detail: str) -> None:
        self._place.recorder.write(
            frames.STAGE, stage=_STAGES[goal], phase=stages.END, ok=ok, detail=detail[:500]
        )

    def _skip_reason(self) -> str:
        why = [state.setup_skipped for state in self._states.values() if state.setup_skipped]
        if not why:
            return ""
        on = f" on {len(why)} of {len(self._states)} nodes" if len(why) < len(self._states) else ""
        return f"setup skipped{on}: {why[0]}"

    def _detail_of(self, goal: str) -> str:
        config = self._place.config
        if goal == "setup" and not config.setup:
            return "nothing to set up"
        if goal == "workers" and not config.is_monarch:
            return "nothing to start"
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

    def _end_if_ranks_are_missing(self) -> None:
        limit = self._place.config.timeouts.workers_s
        for rank in self._place.config.ranks:
            if rank not in self._states and self.goal != "end":
                self._lost.add(rank)
                self._record_loss(rank, "it never reported to rank 0")
                self.end(verdicts.never_joined(judgement.where(self._place.config, rank), limit))

    def _finish_when_all_ended(self) -> None:
        waiting = [
            rank
            for rank in self._place.config.ranks
            if rank not in self._lost and rank in self._states and not self._states[rank].ended
        ]
        if not waiting:
            self._finish()

    def _finish(self) -> None:
        if self._is_over or self._verdict is None:
            return
        self._is_over = True
        self._end_stage("end", ok=True, detail="")
        self.on_last()
        frame = self._verdict.to_frame()
        self._place.recorder.write(frames.END, **frame)
        reach("runner.verdict")
        # After the frame: a later runner that finds this file has nothing left to report.
        write_note(self._place.folder.verdict, json.dumps(frame))
        self._on_over()

    def _write_meshes(self) -> None:
        """Write the addresses of the workers to the driver's plan."""
        pythons = {rank: state.python for rank, state in self._states.items()}
        plan = driver_plan.plan_of(self._place.config, pythons)
        self._place.folder.meshes.write_text(json.dumps(plan))

    def _record_loss(self, rank: int, what: str) -> None:
        config = self._place.config
        self._place.recorder.write(
            frames.WORKER,
            about=rank,
            status=worker_states.LOST,
            address=config.address_of(rank),
            mesh=config.mesh_of(rank),
            pid=None,
            python="",
            exit_code=None,
            detail=what,
        )
