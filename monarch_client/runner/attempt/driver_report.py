"""A driver's report on its own end, and the verdict that follows from it.

`mportal_runtime` writes the report. A driver that never imports it leaves none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.vocabulary import verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from monarch_client.runner.vocabulary.verdicts import Verdict, Where


class DriverReport(NamedTuple):
    """A driver's report. `kind`: user, monarch or python_mismatch. `place`: file:line."""

    kind: str
    error: str
    place: str = ""
    trace: str = ""
    driver_python: str = ""
    worker_python: str = ""


def read_report(path: Path) -> DriverReport | None:
    """Read the driver's report; None if there is none or it is invalid."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return DriverReport(**{name: str(raw.get(name, "")) for name in DriverReport._fields})
    except (OSError, ValueError, AttributeError):
        return None


def verdict_of_driver(
    report: DriverReport | None, where: Where, exit_code: int, evidence: str
) -> Verdict | None:
    """Return the verdict on a driver that returned `exit_code`; None if it reported no reason.

    `monarch_faults` decides about faults of Monarch.
    """
    if report is None:
        return None
    if report.kind == "python_mismatch":
        return verdicts.python_mismatch(report.driver_python, report.worker_python, report.error)
    error = f"{report.error} at {report.place}" if report.place else report.error
    return verdicts.command_failed(where, exit_code, report.trace or evidence, error)
