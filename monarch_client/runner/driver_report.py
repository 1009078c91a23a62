"""What a driver said about its own end, and the verdict that follows.

`mportal_runtime` writes the report. A driver that never imports it leaves none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner import verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from monarch_client.runner.verdicts import Verdict, Where

# Monarch's words for a process that is gone, as against an actor that failed.
_WORDS_OF_LOSS = (
    "no status received from process",
    "exited with non-zero code",
    "Killed(sig=",
    "killed by signal",
    "timed out reaching controller",
)


class DriverReport(NamedTuple):
    """`kind`: user, monarch or python_mismatch. `place`: file:line of the user's own code."""

    kind: str
    error: str
    place: str = ""
    trace: str = ""
    driver_python: str = ""
    worker_python: str = ""


def read_report(path: Path) -> DriverReport | None:
    """The driver's report; None if there is none or it makes no sense."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return DriverReport(**{name: str(raw.get(name, "")) for name in DriverReport._fields})
    except (OSError, ValueError, AttributeError):
        return None


def verdict_of_driver(
    report: DriverReport | None, where: Where, exit_code: int, evidence: str
) -> Verdict | None:
    """The verdict on a driver that returned `exit_code`; None: it did not say why."""
    if report is None:
        return None
    if report.kind == "python_mismatch":
        return verdicts.python_mismatch(report.driver_python, report.worker_python, report.error)
    if report.kind == "monarch":
        return _verdict_of_fault(report, exit_code)
    error = f"{report.error} at {report.place}" if report.place else report.error
    return verdicts.command_failed(where, exit_code, report.trace or evidence, error)


def _verdict_of_fault(report: DriverReport, exit_code: int) -> Verdict:
    for line in f"{report.error}\n{report.trace}".splitlines():
        if any(words in line for words in _WORDS_OF_LOSS):
            return verdicts.proc_lost(line.strip(), exit_code, report.trace)
    return verdicts.monarch_fault(report.error, exit_code, report.trace)
