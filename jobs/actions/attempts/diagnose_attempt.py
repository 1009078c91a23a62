"""The store of the known errors that are recognized in an attempt's ending."""

from __future__ import annotations

import re
from dataclasses import asdict, replace

from jobs.logs.lines import storable
from jobs.logs.reading import latest
from jobs.models import Attempt, HostMetrics
from jobs.policies.diagnosis import PLAIN, diagnose
from jobs.policies.known_failures import KILLED
from jobs.policies.series import percent
from jobs.statuses import StopReason
from monarch_client.runner.scripts.mportal_runtime.tracebacks import exception_that_ended

_LINES_LOOKED_AT = 200
_RANK = re.compile(r"\brank (\d{1,9})\b")
_GIB = 1 << 30


def diagnose_attempt(attempt_id: int, evidence: str = "") -> int | None:
    """Diagnose an attempt that has just ended: its verdict, its last lines and the `evidence`.

    Return the number of the line of its log that shows best why it ended; None if unknown.

    Call it in the transaction that ends the attempt, after its lines are stored.
    """
    attempts = Attempt.objects.filter(pk=attempt_id)
    reason, message = attempts.values_list("stop_reason", "message").get()
    if reason in PLAIN:
        # Nothing is recognized in it: its lines need not be read.
        return None
    # One of them is stored with the diagnosis, in a column that does not take all characters.
    last = latest(attempt_id, _LINES_LOOKED_AT)
    lines = [storable(each.text, len(each.text)) for each in last]
    evidence = storable(evidence, len(evidence))
    found = diagnose(StopReason(reason), message, lines, evidence)
    if found is not None and found.code == KILLED:
        found = replace(found, evidence=_memory_before(attempt_id, message) or found.evidence)
    if found is not None:
        attempts.update(diagnosis=asdict(found))
    telling = _telling_text(evidence) or (found.evidence if found else "")
    numbers = [each.number for each in last if telling and telling in each.text]
    return numbers[-1] if numbers else None


def _telling_text(evidence: str) -> str:
    """Return the exception that the evidence shows, else its last line."""
    raised = exception_that_ended(evidence)
    lines = [line.strip() for line in evidence.splitlines() if line.strip()]
    return raised.error if raised else lines[-1] if lines else ""


def _memory_before(attempt_id: int, message: str) -> str:
    """Return how full the memory of the node was that a verdict names; empty if not reported."""
    named = _RANK.search(message)
    hosts = HostMetrics.objects.filter(attempt=attempt_id)
    if named:
        hosts = hosts.filter(rank=int(named.group(1)))
    host = hosts.order_by("-at").only("rank", "at", "latest").first()
    full = (
        percent(host.latest.get("memory_used"), host.latest.get("memory_total")) if host else None
    )
    ended_at = Attempt.objects.values_list("ended_at", flat=True).get(pk=attempt_id)
    if host is None or full is None or ended_at is None:
        return ""
    total = host.latest["memory_total"] / _GIB
    before_s = max(0, round((ended_at - host.at).total_seconds()))
    return (
        f"The node of rank {host.rank} used {full:.0f} % of its {total:.1f} GiB of memory "
        f"{before_s} s before the end."
    )
