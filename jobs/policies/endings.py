"""The consequence of an attempt's end: done, try again, or give up. Pure arithmetic on counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from jobs.statuses import RECOVERABLE_REASONS, RETRYABLE_REASONS, StopReason

FIRST_RETRY_DELAY_S = 2.0
LONGEST_RETRY_DELAY_S = 300.0
# Beyond the longest delay by far; a job may wait for room some thousand times.
_MOST_DOUBLINGS = 20


class Next(Enum):
    """The next step for a job whose attempt has ended."""

    FINISH = "finish"
    RETRY = "retry"  # counts as a failure
    RECOVER = "recover"  # counts as a recovery


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A bound on attempts: `max_attempts` that user code ended, `max_recoveries` after a loss."""

    max_attempts: int = 1
    max_recoveries: int = 5


def after(
    reason: StopReason,
    *,
    failures: int,
    recoveries: int,
    policy: RetryPolicy,
    is_repeated: bool = False,
) -> Next:
    """Return what follows an ending by `reason`, given how many the job has had before this one.

    A crash that `is_repeated` counts as a failure of the program: other machines do not help.
    """
    is_failure = is_repeated or reason in RETRYABLE_REASONS
    if is_failure and failures + 1 < policy.max_attempts:
        return Next.RETRY
    if not is_failure and reason in RECOVERABLE_REASONS and recoveries < policy.max_recoveries:
        return Next.RECOVER
    return Next.FINISH


def retry_delay_s(endings: int) -> float:
    """Return the seconds to wait after `endings` bad endings: 2, 4, 8 ... at most 300."""
    doublings = min(max(0, endings - 1), _MOST_DOUBLINGS)
    return float(min(LONGEST_RETRY_DELAY_S, FIRST_RETRY_DELAY_S * 2**doublings))
