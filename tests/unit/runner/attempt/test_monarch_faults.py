"""Verdicts on Monarch's reports of its processes, with texts of Monarch 0.7.0."""

from __future__ import annotations

from typing import Any

import pytest

from monarch_client.runner.attempt.driver_report import DriverReport
from monarch_client.runner.attempt.monarch_faults import verdict_of_fault
from monarch_client.runner.base.config import _parse
from monarch_client.runner.vocabulary.node_state import NodeState
from monarch_client.runner.vocabulary.verdicts import Verdict
from tests.unit.runner.base.test_config import MINIMAL

SILENT_PROC = (
    "The actor anon-1<DywT3znixsf>@anon-1<DywT3znixsf>.tcp://10.0.0.2:22222,proc_agent and all its "
    "descendants have failed:\n  timeout waiting for message from proc mesh agent while querying "
    'for "probe-AgvhvyqRqiS". The process likely crashed\n'
)
SILENT_HOST = (
    "The actor <root>.<__main__.Probe probe{'hosts': 1/2, 'procs': 0/1}> and all its descendants "
    "have failed:\n  stopped: no status received from process\n"
)
ENDED = (
    "The actor <root>.<__main__.Probe probe{{'hosts': {at}, 'procs': 0/1}}> and all its "
    "descendants have failed:\n  the process this actor was running on failed: {how}\n"
)


def verdict_of(
    trace: str, error: str = "Error: no", states: dict[int, NodeState] | None = None, **config: Any
) -> Verdict:
    report = DriverReport("monarch", error, trace=trace)
    parsed = _parse({**MINIMAL, "meshes": {"all": 3}, **config})
    return verdict_of_fault(parsed, report, 1, states or {})


@pytest.mark.parametrize(
    ("text", "setting", "limit"),
    [
        (SILENT_PROC, "HYPERACTOR_MESH_GET_ACTOR_STATE_MAX_IDLE", "30s"),
        (SILENT_HOST, "HYPERACTOR_MESH_GET_PROC_STATE_MAX_IDLE", "60s"),
    ],
)
def test_silence_is_no_death_and_comes_with_its_length_and_the_setting_that_limits_it(
    text: str, setting: str, limit: str
) -> None:
    verdict = verdict_of(text)
    assert verdict.reason == "WORKER_LOST"
    assert f"was silent for {limit}" in verdict.message
    assert setting in verdict.hint
    own = verdict_of(text, envs={setting: "90s"})
    assert f"was silent for 90s, so Monarch gave it up ({setting})." in own.message


def test_a_silent_process_has_the_rank_of_its_address() -> None:
    assert "of rank 1 (10.0.0.2) was silent" in verdict_of(SILENT_PROC).message
    assert "of the meshes was silent" in verdict_of(SILENT_HOST).message


def test_a_silence_is_identified_by_its_place_and_its_setting() -> None:
    proc = "silence of rank 1: HYPERACTOR_MESH_GET_ACTOR_STATE_MAX_IDLE"
    assert verdict_of(SILENT_PROC).crash == proc
    host = "silence of 'hosts': 1/2: HYPERACTOR_MESH_GET_PROC_STATE_MAX_IDLE"
    assert verdict_of(SILENT_HOST).crash == host
    nowhere = "  stopped: no status received from process\n"
    assert verdict_of(nowhere).crash == ""


@pytest.mark.parametrize(
    ("how", "reason", "words"),
    [
        ("Killed(sig=11)", "USER_CODE", "was ended by SIGSEGV"),
        ("Killed(sig=9)", "USER_CODE", "was ended by SIGKILL"),
        ("exited with non-zero code 3", "USER_CODE", "returned exit code 3"),
        # As when the machine is taken away.
        ("Killed(sig=15)", "WORKER_LOST", "was ended by SIGTERM"),
    ],
)
def test_a_process_that_dies_on_a_living_host_is_the_programs(
    how: str, reason: str, words: str
) -> None:
    verdict = verdict_of(ENDED.format(at="1/3", how=how))
    assert verdict.reason == reason
    assert verdict.message == f"A process of the meshes of rank 1 (10.0.0.2) {words}."


def test_a_process_that_the_kernel_killed_for_memory_is_out_of_memory() -> None:
    states = {1: NodeState(procs_gone=1, oom_kills=1), 2: NodeState()}
    killed = ENDED.format(at="1/3", how="Killed(sig=9)")
    verdict = verdict_of(killed, states=states)
    assert verdict.reason == "OOM"
    assert "of rank 1 (10.0.0.2) was killed because memory ran out" in verdict.message
    assert verdict_of(killed, states={2: NodeState(oom_kills=1)}).reason == "USER_CODE"


@pytest.mark.parametrize(
    ("at", "gone", "rank"),
    [
        ("1/3", {1}, 1),
        # A driver that ends stops its meshes, which looks like a death to the nodes.
        ("1/3", {0, 1, 2}, 1),
        # A slice: positions in it say nothing.
        ("0/1", {2}, 2),
        ("0/1", {1, 2}, None),
        ("1/3", {2}, 2),
        ("0/1", set(), None),
    ],
)
def test_the_rank_of_a_dead_process_is_named_where_it_is_certain(
    at: str, gone: set[int], rank: int | None
) -> None:
    states = {each: NodeState(procs_gone=1) for each in gone}
    message = verdict_of(ENDED.format(at=at, how="Killed(sig=11)"), states=states).message
    assert (f"of rank {rank} " in message) if rank is not None else ("rank" not in message)


def test_any_other_fault_is_monarchs() -> None:
    verdict = verdict_of("", error="no route:")
    assert verdict.reason == "MONARCH"
    assert verdict.message == "Monarch reported a fault: no route."
