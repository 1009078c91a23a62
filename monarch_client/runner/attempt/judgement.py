"""Decisions on the verdict from the reported states of the nodes. No side effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monarch_client.runner.attempt.driver_report import read_report, verdict_of_driver
from monarch_client.runner.attempt.monarch_faults import verdict_of_fault
from monarch_client.runner.vocabulary import node_state, verdicts
from monarch_client.runner.vocabulary.verdicts import Where

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Mapping

    from monarch_client.runner.base.config import AttemptConfig
    from monarch_client.runner.vocabulary.node_state import NodeState
    from monarch_client.runner.vocabulary.verdicts import Verdict


def where(config: AttemptConfig, rank: int) -> Where:
    """Return the node of `rank` as messages name it."""
    return Where(rank, config.address_of(rank))


def failure_of_node(config: AttemptConfig, rank: int, state: NodeState) -> Verdict | None:
    """Return the verdict on a failure of the node itself; None while it works."""
    here = where(config, rank)
    if state.stopped_by:
        return verdicts.stopped(here, state.stopped_by)
    if state.obstacle or state.setup or state.setup_late:
        return _failed_preparation(config, here, state)
    if state.worker == node_state.FAILED:
        return verdicts.worker_never_ready(here, config.port, state.worker_why, state.evidence)
    if state.worker == node_state.LOST:
        return _loss(here, state)
    return None


def _failed_preparation(config: AttemptConfig, here: Where, state: NodeState) -> Verdict:
    why = state.obstacle_why
    if state.obstacle == node_state.UPLOADS:
        return verdicts.not_laid_out(here, why)
    if state.obstacle == node_state.REPOSITORY:
        return verdicts.not_fetched(here, why, state.evidence)
    if state.obstacle == node_state.MONARCH:
        return verdicts.monarch_not_installed(here, config.torchmonarch, why, state.evidence)
    if state.setup:
        return verdicts.setup_failed(here, state.setup, state.evidence)
    return verdicts.setup_too_slow(here, config.timeouts.setup_s, state.evidence)


def outcome_of_job(
    config: AttemptConfig, states: Mapping[int, NodeState], report: Path
) -> Verdict | None:
    """Return the verdict on the users' programs; None while open. `report` is the driver's."""
    if config.is_monarch and not config.has_driver:
        have_ended = [states[rank].worker == node_state.EXITED for rank in states]
        is_over = len(have_ended) == len(config.ranks) and all(have_ended)
        return _mismatch(states) or (verdicts.hosts_shut_down() if is_over else None)
    if config.is_monarch:
        return _mismatch(states) or _outcome_of_driver(config, states, report)
    for rank, state in sorted(states.items()):
        if state.run:
            return _failed_command(where(config, rank), state)
    is_complete = all(rank in states and states[rank].run == 0 for rank in config.ranks)
    return verdicts.completed() if is_complete else None


def may_be_a_loss(report: Path) -> bool:
    """Whether the driver ended by a Monarch fault that the loss of a node may explain."""
    found = read_report(report)
    return found is not None and found.kind == "monarch"


def _outcome_of_driver(
    config: AttemptConfig, states: Mapping[int, NodeState], report: Path
) -> Verdict | None:
    head = states.get(0)
    if head is None or head.run is None:
        return None
    if head.run == 0:
        return verdicts.completed()
    here, found = where(config, 0), read_report(report)
    if found is not None and found.kind == "monarch":
        return verdict_of_fault(config, found, head.run, states)
    said = verdict_of_driver(found, here, head.run, head.evidence)
    return said or _failed_command(here, head)


def _mismatch(states: Mapping[int, NodeState]) -> Verdict | None:
    versions = {rank: state.python for rank, state in states.items() if state.python}
    return verdicts.workers_differ(versions) if len(set(versions.values())) > 1 else None


def _failed_command(here: Where, state: NodeState) -> Verdict:
    code = state.run or 0
    if state.oom:
        return verdicts.out_of_memory(here, "The program", code, state.evidence)
    if state.run_signalled:
        return verdicts.command_killed(here, code, state.evidence)
    if code == 1:  # that of Python after an exception
        return _failed_by_exception(here, state)
    return verdicts.command_failed(here, code, state.evidence)


def _failed_by_exception(here: Where, state: NodeState) -> Verdict:
    # Only for this ending: the drivers' package takes a moment to import.
    from monarch_client.runner.scripts.mportal_runtime.tracebacks import (  # noqa: PLC0415
        exception_that_ended,
    )

    found = exception_that_ended(state.evidence)
    if found is None:
        return verdicts.command_failed(here, 1, state.evidence)
    # Of a long one its head is kept, with the exception: launchers print more after it.
    evidence = "\n".join(state.evidence.splitlines()[found.first_line :])
    return verdicts.command_failed(here, 1, evidence[: verdicts.EVIDENCE_LENGTH], found.words)


def _loss(here: Where, state: NodeState) -> Verdict:
    if state.oom:
        return verdicts.out_of_memory(here, "The worker", 137, state.evidence)
    return verdicts.worker_lost(here, state.worker_why, state.evidence, state.worker_exit)
