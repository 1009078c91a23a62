"""Diagnosis of known failures: from an attempt's last output to a cause, its proof and a remedy.

Pure: texts in, a diagnosis out. The knowledge is the table in `jobs.policies.known_failures`; its
order is that of trust, so that what explains the rest comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from jobs.escapes import SEQUENCE
from jobs.policies.known_failures import FAILURES, USUAL, Failure
from jobs.statuses import PURPOSES, StopReason
from monarch_client.wire.attempts import Diagnosis

# Of a long line its two ends are looked at.
_END_CHARS = 300
# Endings that explain themselves.
PLAIN = PURPOSES | {
    StopReason.COMPLETED,
    StopReason.TIMEOUT,
    StopReason.BUDGET,
    StopReason.DEPENDENCY,
    StopReason.LOG_POLICY,
}
_ESCAPES = re.compile(SEQUENCE)


def diagnose(
    reason: StopReason, message: str, lines: Iterable[str] = (), evidence: str = ""
) -> Diagnosis | None:
    """Diagnose this ending; None if no failure is recognized.

    `lines` are the last ones of the log, `evidence` what the runner kept; the newest come last.
    """
    if reason in PLAIN:
        return None
    own = _telling(chain(evidence.splitlines(), message.splitlines()))
    printed = _telling(lines) + own
    for failure in FAILURES:
        if failure.reasons and reason not in failure.reasons:
            continue
        line = _line_that_shows(failure, own if failure.is_effect else printed, message)
        if line is not None:
            shown = line.strip()
            return Diagnosis(
                code=failure.code, title=failure.title, evidence=shown, fix=failure.fix
            )
    return None


def _telling(lines: Iterable[str]) -> list[str]:
    return [line for line in map(readable, lines) if not USUAL.search(line)]


def readable(line: str) -> str:
    """Return a line for display: without escape sequences, shortened in its middle."""
    return _ends_of(_ESCAPES.sub("", line))


def _ends_of(line: str) -> str:
    if len(line) <= 2 * _END_CHARS:
        return line
    return f"{line[:_END_CHARS]} ... {line[-_END_CHARS:]}"


def _line_that_shows(failure: Failure, printed: list[str], message: str) -> str | None:
    if failure.pattern is None:
        return message.partition("\n")[0]
    return next((line for line in reversed(printed) if failure.pattern.search(line)), None)
