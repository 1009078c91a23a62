"""The limit on how long workers may be out of reach."""

from __future__ import annotations

import pytest

from monarch_client.attaching import watch
from monarch_client.attaching.errors import HostLostError, SessionLostError
from monarch_client.attaching.loss import LossAlarm
from monarch_client.attaching.watch import LossWatch
from tests.waiting import eventually

CUT = TimeoutError("no route to host")
ENDED = ConnectionRefusedError("refused")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch):
    """Watch a host whose troubles, one for each look, are given."""
    monkeypatch.setattr(watch, "EVERY_S", 0.01)
    monkeypatch.setattr(watch, "ENDED_S", 0.1)
    watches: list[LossWatch] = []

    def begin(look, limit_s: float = 0.1) -> LossWatch:
        watches.append(LossWatch("job 7", {"a": look}, LossAlarm(), hint="Look.", limit_s=limit_s))
        return watches[-1]

    yield begin
    for each in watches:
        each.close()


def test_a_host_out_of_reach_for_longer_than_the_limit_loses_the_session(watched) -> None:
    loss = watched(lambda: CUT)
    assert eventually(lambda: loss.error)
    assert isinstance(loss.error, SessionLostError)
    assert loss.error.away_s > 0.1
    for words in ("job 7", "no route to host", "new process", "Look."):
        assert words in str(loss.error)


def test_a_worker_that_has_ended_is_named_long_before_the_limit(watched) -> None:
    loss = watched(lambda: ENDED, limit_s=300)
    assert eventually(lambda: loss.error)
    assert isinstance(loss.error, HostLostError)
    assert loss.error.hosts == ["a"]


def test_short_absences_do_not_add_up(watched) -> None:
    looks = iter([CUT, None] * 30)
    ended = []
    loss = watched(lambda: next(looks, None) or (ended.append(1) if not any(looks) else None))
    assert eventually(lambda: ended)
    assert loss.error is None


def test_a_machine_that_slept_for_longer_than_the_limit_has_lost_the_session(
    watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = [0.0]
    monkeypatch.setattr(watch, "suspended_s", lambda: slept[0])
    loss = watched(lambda: None, limit_s=300)
    slept[0] = 301.0
    assert eventually(lambda: loss.error)
    assert isinstance(loss.error, SessionLostError)
