"""The time-outs of a program outside of the workers' network."""

from __future__ import annotations

from monarch_client.attaching import profile
from monarch_client.runner.programs.environment import MONARCH_TUNING

IDLE = "HYPERACTOR_MESH_GET_PROC_STATE_MAX_IDLE"


def test_a_time_out_that_the_user_has_set_stays_and_the_others_are_long() -> None:
    assert profile.missing({})[IDLE] == "900s"
    assert IDLE not in profile.missing({IDLE: "7s"})


def test_processes_outlive_a_session_that_may_come_back_by_little() -> None:
    seconds = float(profile.missing({})["HYPERACTOR_MESH_ORPHAN_TIMEOUT"].removesuffix("s"))
    assert profile.LIMIT_S + 60 <= seconds <= profile.LIMIT_S + 180


def test_the_time_outs_of_a_driver_are_replaced() -> None:
    assert profile.missing({**MONARCH_TUNING}) == profile.TIMEOUTS
