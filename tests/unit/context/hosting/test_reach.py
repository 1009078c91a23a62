"""The limits of silence between a driver and its hosts."""

from __future__ import annotations

from monarch_client.attaching.loss import LossAlarm
from monarch_client.context.hosting.batches import AGENT_WAITS_S, DRIVER_WAITS_S
from monarch_client.context.hosting.reach import Reach
from monarch_client.runner.vocabulary.limits import MAX_AWAY_S


def test_within_the_job_silence_is_short() -> None:
    reach = Reach()
    assert (reach.host_silence_s(), reach.driver_silence_s) == (DRIVER_WAITS_S, AGENT_WAITS_S)


def test_a_driver_outside_of_the_job_waits_while_nothing_is_reported() -> None:
    alarm = LossAlarm()
    try:
        reach = Reach()
        assert reach.host_silence_s() == MAX_AWAY_S
        assert reach.driver_silence_s > MAX_AWAY_S
        other = Reach()
        other.note_fault()
        assert (other.host_silence_s(), reach.host_silence_s()) == (DRIVER_WAITS_S, MAX_AWAY_S)
        alarm.report(OSError("lost"))
        assert reach.host_silence_s() == DRIVER_WAITS_S
    finally:
        alarm.close()
    assert Reach().driver_silence_s == AGENT_WAITS_S
