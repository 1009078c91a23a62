"""The hook for Monarch's faults: which a context takes, and when it is the program's again."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from monarch_client.context.hosting.agent_faults import AgentFaults


class Fault:
    def __init__(self, mesh_name: str, text: str = "") -> None:
        self.mesh_name = mesh_name
        self._text = text

    def __str__(self) -> str:
        return self._text


def test_a_context_takes_only_the_faults_that_have_its_name() -> None:
    seen: list[Any] = []
    actor = SimpleNamespace(unhandled_fault_hook=seen.append)
    faults = AgentFaults()
    reported: list[str] = []
    for name in ("task_context_12", "task_context_34"):
        faults.take(actor, name, partial(reported.append, name))
    own = Fault("trainers", 'File "monarch_client/context/task_context.py", line 7')
    other = Fault("task_context_56_agents")
    for fault in (own, Fault("task_context_12_agents"), Fault("", "task_context_34_procs"), other):
        actor.unhandled_fault_hook(fault)
    assert seen == [own, other]
    assert reported == ["task_context_12", "task_context_34"]


def test_one_hook_serves_all_contexts_and_the_last_restores_that_of_the_program() -> None:
    program = [].append
    actor = SimpleNamespace(unhandled_fault_hook=program)
    faults = AgentFaults()
    faults.take(actor, "first", lambda: None)
    hook = actor.unhandled_fault_hook
    faults.take(actor, "second", lambda: None)
    assert actor.unhandled_fault_hook is hook
    faults.restore(actor, "first")
    assert actor.unhandled_fault_hook is hook
    faults.restore(actor, "second")
    assert actor.unhandled_fault_hook is program


def test_a_hook_that_the_program_has_set_since_stays() -> None:
    seen: list[Any] = []
    actor = SimpleNamespace(unhandled_fault_hook=lambda _: None)
    faults = AgentFaults()
    faults.take(actor, "first", lambda: None)
    context_hook = actor.unhandled_fault_hook

    def wrapped(failure: Any) -> None:
        seen.append(failure)
        context_hook(failure)

    actor.unhandled_fault_hook = wrapped
    faults.take(actor, "second", lambda: None)
    faults.restore(actor, "first")
    actor.unhandled_fault_hook(Fault("trainers"))
    assert len(seen) == 1
    faults.restore(actor, "second")
    assert actor.unhandled_fault_hook is wrapped
