"""`mportal_runtime.log`: a line that the portal reads as a report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import monarch_client.runner.scripts
from jobs.policies.program_metrics import report_of

RUNTIME = Path(monarch_client.runner.scripts.__file__).parent


def run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"from mportal_runtime import log\n{program}"]
    environment = {"PYTHONPATH": str(RUNTIME)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_what_log_prints_is_what_the_portal_reads():
    done = run("log(12, loss=1e-05, **{'train/acc': 1, 'grad': float('nan')})")
    report = report_of(0, 0.0, done.stdout.rstrip("\n"))
    assert report is not None, done.stderr
    assert (report.step, report.values) == (12, {"loss": 1e-05, "train/acc": 1.0, "grad": None})


def test_values_are_printed_with_as_many_digits_as_one_reads():
    values = "reward=0.9693853029417207, tokens=123456789, time=1764240000.25, far=2e40"
    done = run(f"log(161, {values}, loss=-1.23456789e-07, bad=float('inf'))")
    expected = "reward=0.969385 tokens=123456789 time=1764240000.25 far=2e+40"
    assert done.stdout == f"step=161 {expected} loss=-1.23457e-07 bad=inf\n", done.stderr


def test_whole_numbers_are_printed_in_all_digits():
    values = "a=2**53, b=2.0**53, c=-(2**63), d=10**15, e=1e15, f=10**40, g=-(10**400), h=True"
    done = run(f"log(2**53, {values})")
    a_and_b = "a=9007199254740992 b=9007199254740992 c=-9223372036854775808"
    d_to_h = "d=1000000000000000 e=1000000000000000 f=1e+40 g=-inf h=1"
    assert done.stdout == f"step=9007199254740992 {a_and_b} {d_to_h}\n", done.stderr


def test_a_name_that_cannot_be_read_is_refused():
    for call in ("log(1)", "log(1, **{'a b': 1})", "log(1, **{'x' * 99: 1})"):
        done = run(call)
        assert "ValueError: log()" in done.stderr
        assert done.stdout == ""
