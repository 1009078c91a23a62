"""SkyPilot's server fails in its own ways: each job ends right, once, on one cluster at a time."""

from __future__ import annotations

import os

import pytest

from tests.faults.sky.ground import INFRA, SkyGround
from tests.faults.sky.trouble import NO_ROOM, Trouble, TroubledPlay, fault

CARRIER = "pull"
NEAR, FAR = "slurm/near/all", "slurm/far/all"
PLACES = [
    {"infra": infra, "capacity": 16, "usd_per_hour": usd}
    for infra, usd in ((INFRA, 1.0), (NEAR, 2.0), (FAR, 3.0))
]
NEAR_IS_FULL = {"do": "error", "on": "provision", "infra": NEAR}
TROUBLES = [
    Trouble(name="503-to-everything", faults=(fault("unavailable", "*", 6),)),
    Trouble(name="launch-answered-late", faults=(fault("late", "launch", seconds=8),)),
    Trouble(name="launch-taken-and-dropped", faults=(fault("drop", "launch"),)),
    Trouble(name="looks-dropped", faults=(fault("drop", "status", 3), fault("drop", "queue", 2))),
    Trouble(name="launch-lost", faults=(fault("lose", "launch"),)),
    Trouble(name="exec-lost", start="warm", faults=(fault("lose", "exec"),)),
    Trouble(name="down-lost", faults=(fault("lose", "down"),)),
    Trouble(
        name="launch-broken-off-and-said-to-be-up",
        faults=(fault("halt", "launch.up"),),
        keys={"interrupted_looks": "UP"},
    ),
    Trouble(name="launch-broken-off-with-its-job", faults=(fault("halt", "launch.submitted"),)),
    Trouble(name="no-room-at-first", faults=(fault("error", "launch", **NO_ROOM),), attempts=2),
    Trouble(
        name="two-places-in-order",
        faults=(fault(**NEAR_IS_FULL),),
        resources={"ordered": [{"infra": NEAR}, {"infra": FAR}]},
        infra=FAR,
    ),
    Trouble(name="down-fails-twice", faults=(fault("error", "down", 2, message="not now"),)),
    Trouble(name="log-cut-off", faults=(fault("cut", "logs", 3, bytes=3000),)),
]
# Played with FULL=1 alone.
RARE = [
    Trouble(name="503-to-the-launch", faults=(fault("unavailable", "launch", 3),)),
    Trouble(
        name="exec-answered-late",
        start="warm",
        faults=(fault("late", "exec", seconds=8),),
    ),
    Trouble(name="status-answered-late", faults=(fault("late", "status", 2, seconds=8),)),
    Trouble(name="launch-dropped", faults=(fault("drop", "launch", taken=False),)),
    Trouble(name="exec-taken-and-dropped", start="warm", faults=(fault("drop", "exec"),)),
    Trouble(name="down-taken-and-dropped", faults=(fault("drop", "down"),)),
    Trouble(name="launch-broken-off", faults=(fault("halt", "launch.provisioning"),)),
    Trouble(
        name="any-of-two-places",
        faults=(fault(**NEAR_IS_FULL),),
        resources={"any_of": [{"infra": NEAR}, {"infra": FAR}]},
        infra=FAR,
    ),
]
CHOSEN = [*TROUBLES, *RARE] if os.environ.get("FULL") == "1" else TROUBLES


@pytest.mark.parametrize("trouble", CHOSEN, ids=str)
def test_a_job_ends_right_once_on_one_cluster_at_a_time_with(
    trouble: Trouble, sky_ground: SkyGround
) -> None:
    plain = {"places": PLACES, "interrupted_looks": "INIT", "faults": []}
    sky_ground.stub.plan(**plain)
    play = TroubledPlay(sky_ground, trouble)
    try:
        assert play.run() == [], play.report()
    finally:
        sky_ground.stub.plan(**plain)
