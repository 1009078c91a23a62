"""The store of the known errors that are recognized in an attempt's ending."""

from __future__ import annotations

from dataclasses import asdict

from jobs.logs.lines import storable
from jobs.logs.reading import latest
from jobs.models import Attempt
from jobs.policies.diagnosis import PLAIN, diagnose
from jobs.statuses import StopReason

_LINES_LOOKED_AT = 200


def diagnose_attempt(attempt_id: int, evidence: str = "") -> None:
    """Look at the verdict, the last lines and the `evidence` of an attempt that has just ended.

    Call it in the transaction that ends the attempt, after its lines are stored.
    """
    attempts = Attempt.objects.filter(pk=attempt_id)
    reason, message = attempts.values_list("stop_reason", "message").get()
    if reason in PLAIN:
        # Nothing is recognized in it: its lines need not be read.
        return
    # One of them is stored with the diagnosis, in a column that does not take all characters.
    lines = [storable(each.text, len(each.text)) for each in latest(attempt_id, _LINES_LOOKED_AT)]
    evidence = storable(evidence, len(evidence))
    found = diagnose(StopReason(reason), message, lines, evidence)
    if found is not None:
        attempts.update(diagnosis=asdict(found))
