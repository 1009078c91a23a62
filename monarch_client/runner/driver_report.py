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
    """`kind`: user, monarch or python_mismatch."""

    kind: str
    error: str
    last_line: str = ""
    fault: str = ""
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
    proof = "\n".join(filter(None, [report.error, report.last_line]))
    return verdicts.command_failed(where, exit_code, proof or evidence, report.error)


def _verdict_of_fault(report: DriverReport, exit_code: int) -> Verdict:
    text = "\n".join(filter(None, [report.fault, report.error, report.last_line]))
    first = next(iter((report.fault or report.error).splitlines()), "")
    if any(words in text for words in _WORDS_OF_LOSS):
        return verdicts.proc_lost(first, exit_code, text)
    return verdicts.monarch_fault(first, exit_code, text)
