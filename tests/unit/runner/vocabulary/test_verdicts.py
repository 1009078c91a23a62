from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.statuses import StopReason
from monarch_client.runner.attempt.driver_report import (
    DriverReport,
    read_report,
    verdict_of_driver,
)
from monarch_client.runner.vocabulary import verdicts
from monarch_client.runner.vocabulary.verdicts import Verdict, Where

HERE = Where(2, "10.0.0.3")
ALL = [
    verdicts.completed(),
    verdicts.stopped(HERE, "SIGTERM"),
    verdicts.setup_failed(HERE, 3, "pip: no such package"),
    verdicts.setup_too_slow(HERE, 60, "waiting"),
    verdicts.not_laid_out(HERE, "the folder for ~/data could not be unpacked: torn"),
    verdicts.not_fetched(HERE, "https://h/r at main: not found", "fatal: not found"),
    verdicts.monarch_not_installed(HERE, "0.7.0", "there is no pip", "pip: not found"),
    verdicts.never_joined(HERE, 60),
    verdicts.worker_never_ready(HERE, 22222, "it returned exit code 1 first", "boom"),
    verdicts.worker_lost(HERE, "its process was ended by SIGKILL", ""),
    verdicts.proc_died(HERE, 139, 1, "trace"),
    verdicts.proc_died(None, 3, 1, "trace"),
    verdicts.proc_silent(HERE, "30s", "HYPERACTOR_X", 1, "trace"),
    verdicts.runner_lost(HERE),
    verdicts.out_of_memory(HERE, "The program", 137, ""),
    verdicts.python_mismatch("3.12", "3.11"),
    verdicts.workers_differ({0: "3.11", 2: "3.12"}),
    verdicts.command_failed(HERE, 7, "last line"),
    verdicts.command_failed(HERE, 137, ""),
    verdicts.command_failed(HERE, 139, ""),
    verdicts.command_killed(HERE, 137, ""),
    verdicts.command_failed(HERE, 1, "trace", "ValueError: no at train.py:9"),
    verdicts.monarch_fault("an actor failed", 1, "text"),
]


@pytest.mark.parametrize("verdict", ALL, ids=lambda verdict: verdict.message[:40])
def test_every_verdict_has_a_known_reason_and_says_what_to_do(verdict: Verdict) -> None:
    assert verdict.reason in StopReason.values
    assert verdict.message.endswith(".")
    assert verdict.is_success or verdict.hint.endswith(".") or "`" in verdict.hint
    assert json.dumps(verdict.to_frame())


@pytest.mark.parametrize(
    "verdict", [each for each in ALL if "rank 2" in each.message], ids=lambda each: each.reason
)
def test_a_verdict_on_a_node_names_it(verdict: Verdict) -> None:
    assert "10.0.0.3" in verdict.message or verdict.reason == "PYTHON_MISMATCH"


def test_evidence_is_bounded_and_keeps_the_end() -> None:
    frame = verdicts.command_failed(HERE, 1, "x" * 50_000 + "the end").to_frame()
    assert len(frame["evidence"]) <= 4000
    assert frame["evidence"].endswith("the end")


@pytest.mark.parametrize(
    ("code", "words"),
    [(7, "returned exit code 7."), (137, "returned exit code 137, as after SIGKILL.")],
)
def test_a_shells_exit_code_is_distinguished_from_a_death_by_signal(code: int, words: str) -> None:
    assert words in verdicts.command_failed(HERE, code, "").message


@pytest.mark.parametrize(("code", "name"), [(137, "SIGKILL"), (139, "SIGSEGV")])
def test_a_death_by_signal_names_the_signal(code: int, name: str) -> None:
    assert f"was ended by {name}." in verdicts.command_killed(HERE, code, "").message


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ("ModuleNotFoundError: No module named 'monarch'", "torchmonarch"),
        ("ImportError: libcuda.so.1", "lacks something"),
        ("OSError: Address already in use", "portal.port"),
        ("silence", "last lines"),
    ],
)
def test_the_hint_on_a_silent_worker_follows_its_evidence(evidence: str, words: str) -> None:
    assert words in verdicts.worker_never_ready(HERE, 22222, "it was slow", evidence).hint


def report(**fields: str) -> DriverReport:
    return DriverReport(**{"kind": "user", "error": "ValueError: no", **fields})


def test_an_exception_of_the_driver_is_the_users() -> None:
    verdict = verdict_of_driver(report(place="train.py:9", trace="Traceback..."), HERE, 1, "")
    assert verdict is not None
    assert (verdict.reason, verdict.exit_code, verdict.evidence) == ("USER_CODE", 1, "Traceback...")
    assert "raised ValueError: no at train.py:9." in verdict.message


def test_a_mismatch_names_both_versions() -> None:
    mismatch = report(kind="python_mismatch", driver_python="3.12", worker_python="3.11")
    verdict = verdict_of_driver(mismatch, HERE, 1, "")
    assert verdict is not None
    assert verdict.reason == "PYTHON_MISMATCH"
    assert "3.12" in verdict.message
    assert "3.11" in verdict.message


def test_a_driver_without_a_report_has_no_verdict_yet(tmp_path: Path) -> None:
    assert verdict_of_driver(read_report(tmp_path / "none"), HERE, 1, "") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"kind": "user"}'])
def test_a_damaged_report_breaks_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    found = read_report(path)
    assert found is None or found.kind == "user"
