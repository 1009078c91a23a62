"""The consequences of an attempt's end."""

import pytest

from jobs.policies.endings import Next, RetryPolicy, after, retry_delay_s
from jobs.statuses import StopReason

THREE = RetryPolicy(max_attempts=3, max_recoveries=2)


@pytest.mark.parametrize("reason", [StopReason.USER_CODE, StopReason.SETUP, StopReason.OOM])
def test_a_failure_is_retried_until_the_attempts_are_used_up(reason):
    follow_ups = [after(reason, failures=n, recoveries=0, policy=THREE) for n in range(3)]
    assert follow_ups == [Next.RETRY, Next.RETRY, Next.FINISH]


def test_a_lost_worker_is_recovered_and_never_counts_as_a_failure():
    lost = StopReason.WORKER_LOST
    follow_ups = [after(lost, failures=2, recoveries=n, policy=THREE) for n in range(3)]
    assert follow_ups == [Next.RECOVER, Next.RECOVER, Next.FINISH]


def test_a_crash_that_repeats_is_a_failure_of_the_program_and_no_recovery():
    follow_ups = [
        after(StopReason.WORKER_LOST, failures=n, recoveries=1, policy=THREE, is_repeated=True)
        for n in range(3)
    ]
    assert follow_ups == [Next.RETRY, Next.RETRY, Next.FINISH]


@pytest.mark.parametrize(
    "reason", [StopReason.COMPLETED, StopReason.WORKER_NEVER_READY, StopReason.TIMEOUT]
)
def test_other_endings_are_final(reason):
    assert after(reason, failures=0, recoveries=0, policy=THREE) is Next.FINISH


def test_without_a_policy_a_failure_is_final_and_a_lost_worker_is_recovered_five_times():
    default = RetryPolicy()
    user_code, lost = StopReason.USER_CODE, StopReason.WORKER_LOST
    assert after(user_code, failures=0, recoveries=0, policy=default) is Next.FINISH
    assert after(lost, failures=0, recoveries=4, policy=default) is Next.RECOVER
    assert after(lost, failures=0, recoveries=5, policy=default) is Next.FINISH


def test_the_wait_before_the_next_try_doubles_up_to_five_minutes():
    assert [retry_delay_s(n) for n in (1, 2, 3, 20)] == [2.0, 4.0, 8.0, 300.0]
