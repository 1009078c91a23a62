"""What Monarch reports of its processes becomes a verdict: texts as Monarch 0.7.0 writes them."""

from __future__ import annotations

from typing import Any

import pytest

from monarch_client.runner.config import _parse
from monarch_client.runner.driver_report import DriverReport
from monarch_client.runner.monarch_faults import verdict_of_fault
from monarch_client.runner.verdicts import Verdict
from tests.unit.runner.test_config import MINIMAL

SILENT_PROC = (
    "The actor anon-1<DywT3znixsf>@anon-1<DywT3znixsf>.tcp://10.0.0.2:22222,proc_agent and all its "
    "descendants have failed:\n  timeout waiting for message from proc mesh agent while querying "
    'for "probe-AgvhvyqRqiS". The process likely crashed\n'
)
SILENT_HOST = (
    "The actor <root>.<__main__.Probe probe{'hosts': 1/2, 'procs': 0/1}> and all its descendants "
    "have failed:\n  stopped: no status received from process\n"
)
KILLED = "The actor a failed:\n  the process this actor was running on failed: Killed(sig=9)\n"


def verdict_of(trace: str, error: str = "Error: no", **config: Any) -> Verdict:
    report = DriverReport("monarch", error, trace=trace)
    return verdict_of_fault(_parse({**MINIMAL, "meshes": {"all": 3}, **config}), report, 1)


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


def test_a_fault_that_speaks_of_a_dead_process_is_a_lost_worker() -> None:
    verdict = verdict_of(KILLED)
    assert verdict.reason == "WORKER_LOST"
    assert "Killed(sig=9)" in verdict.message


def test_any_other_fault_is_monarchs() -> None:
    verdict = verdict_of("", error="no route:")
    assert verdict.reason == "MONARCH"
    assert verdict.message == "Monarch reported a fault: no route."
