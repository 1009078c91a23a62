"""Who goes onto a kept cluster that is on, and what that means for whoever waits for machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobs.scheduling.causes import NoRoom
from jobs.scheduling.kept import Guest, KeptCluster, Wish
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import DAY_S, Decision, QueuedJob, RunningJob, Snapshot, Start
from tests.unit.scheduling.shapes import machines, sentences, shape, started

pytestmark = [pytest.mark.feature("S2.8"), pytest.mark.feature("P5.1")]

HOUR = 3600.0
NOW = 10 * DAY_S
KEEPS = Wish(1, 2, 22_222, fingerprint="f", keeps_s=HOUR)
# Of four nodes two are kept without a job until an hour from now, and two are in use for five.
LEFT = RunningJob(-1, shape(2, "fake"), NOW + HOUR, cluster="mp-a", kept="mp-a")
BUSY = RunningJob(7, shape(2, "fake"), NOW + 5 * HOUR)
CLUSTER = KeptCluster("mp-a", 1, "fake", 2, "f", keeps_s=HOUR)
BEHIND = "Waits behind job 1, which needs more room."


def first(nodes: int = 2, *, rank: int = 0, waits_s: float = HOUR) -> QueuedJob:
    """Of another project; it comes first."""
    return QueuedJob(1, shape(nodes, "fake"), project_id=2, rank=rank, since_s=NOW - waits_s)


def guest(number: int = 2, lasts_s: float | None = HOUR, **fields: Any) -> QueuedJob:
    wish = fields.pop("wish", KEEPS)
    return QueuedJob(
        number, shape(2, "fake"), project_id=1, duration_s=lasts_s, wish=wish, **fields
    )


def snapshot(*queued: QueuedJob, **fields: Any) -> Snapshot:
    given: dict[str, Any] = {
        "running": (LEFT, BUSY),
        "limits": machines(fake=4, used=4, kept=2),
        "kept": (CLUSTER,),
        "now_s": NOW,
        **fields,
    }
    return Snapshot(queued, **given)


def of(number: int, plans: Snapshot) -> Decision:
    return next(each for each in plan(plans) if each.job_id == number)


def test_nobody_of_a_lower_queue_puts_off_by_a_kept_cluster_who_waits_for_its_machines():
    plans = snapshot(first(rank=1), guest())
    assert sentences(plans)[2] == BEHIND
    assert of(2, snapshot(first(), guest())) == Start(2, "mp-a")


def test_nobody_who_has_waited_longer_than_the_pools_patience_is_put_off_by_a_kept_cluster():
    assert of(2, snapshot(first(waits_s=DAY_S - 1), guest())) == Start(2, "mp-a")
    assert sentences(snapshot(first(waits_s=DAY_S), guest()))[2] == BEHIND
    soon = {"patience_s": {"backend:fake": HOUR}}
    assert sentences(snapshot(first(waits_s=HOUR), guest(), **soon))[2] == BEHIND


@pytest.mark.parametrize(("lasts_s", "starts"), [(3 * HOUR, True), (4.5 * HOUR, False)])
def test_a_guest_starts_whose_cluster_is_free_again_when_it_is_counted_on(lasts_s, starts):
    """Four nodes are free in five hours: after its end it is kept for another one."""
    plans = snapshot(first(4, rank=1), guest(lasts_s=lasts_s))
    assert (of(2, plans) == Start(2, "mp-a")) is starts
    endless = guest(lasts_s=None)
    assert sentences(snapshot(first(4, rank=1), endless))[2] == BEHIND


def test_a_guest_starts_on_machines_that_nobody_counts_on():
    """They were kept for longer than the first waits, or there is room beside it all the same."""
    longer = replace(LEFT, ends_s=NOW + 6 * HOUR)
    plans = snapshot(first(rank=1), guest(lasts_s=None), running=(longer, BUSY))
    assert of(2, plans) == Start(2, "mp-a")
    two = (LEFT, replace(BUSY, ends_s=NOW + 0.5 * HOUR))
    plans = snapshot(first(rank=1), guest(lasts_s=None), running=two)
    assert of(2, plans) == Start(2, "mp-a")


def test_where_nothing_says_when_there_is_room_the_machines_that_come_free_are_for_the_first():
    endless = (LEFT, replace(BUSY, ends_s=None))
    plans = snapshot(first(4, rank=1), guest(), running=endless)
    assert sentences(plans)[2] == BEHIND
    for_ever = (replace(LEFT, ends_s=None), replace(BUSY, ends_s=None))
    assert of(2, snapshot(first(4, rank=1), guest(), running=for_ever)) == Start(2, "mp-a")


def test_a_job_goes_at_once_onto_the_cluster_that_it_names():
    """It stays on for as long as that job waits, so nobody else would have it."""
    names = guest(wish=Wish(1, 2, 22_222, cluster="mp-a"), lasts_s=None)
    assert of(2, snapshot(first(rank=1), names)) == Start(2, "mp-a")


def test_what_a_guest_takes_of_the_first_ones_machines_is_no_spare_of_others():
    """Six nodes, of which two are free in an hour and two in five; the first needs two of them."""
    room = machines(fake=6, used=4, kept=2)
    small = QueuedJob(3, shape(2, "fake"), project_id=3)
    waits = first(3, waits_s=HOUR)
    assert of(3, snapshot(waits, small, limits=room)).cause.sentence == BEHIND
    one = replace(small, shape=shape(1, "fake"))
    assert of(3, snapshot(waits, one, limits=room)) == Start(3)
    plans = snapshot(waits, replace(guest(), rank=0), one, limits=room)
    # The guest has put the first off: beside it there is nothing any more until it has ended.
    assert started(plans) == [2]


def test_a_job_that_keeps_its_cluster_fills_no_gap_that_it_outlasts_with_it():
    """A gap of five hours: it runs for three and keeps its machines for one, or for three."""
    limits, running = machines(fake=4, used=2), (BUSY,)
    waits = first(4, rank=1)
    for keeps_s, starts in ((HOUR, True), (3 * HOUR, False)):
        keeping = guest(lasts_s=3 * HOUR, wish=replace(KEEPS, keeps_s=keeps_s))
        plans = snapshot(waits, keeping, limits=limits, running=running, kept=())
        assert (of(2, plans) == Start(2)) is starts
    plain = guest(lasts_s=3 * HOUR, wish=None)
    assert of(2, snapshot(waits, plain, limits=limits, running=running, kept=())) == Start(2)


def test_a_place_that_is_held_after_a_guest_went_in_counts_on_its_cluster_only_after_it():
    plans = snapshot(guest(number=1, rank=1), replace(first(), job_id=2))
    first_one, waits = plan(plans)
    assert first_one == Start(1, "mp-a")
    assert waits.cause.expected_s == NOW + 2 * HOUR


def test_a_cluster_that_was_switched_on_is_free_again_after_its_job_and_its_idle_time():
    off = replace(CLUSTER, is_on=False)
    plans = snapshot(
        guest(number=1, rank=1, lasts_s=2 * HOUR),
        replace(first(4), job_id=2),
        kept=(off,),
        running=(replace(BUSY, ends_s=NOW + HOUR),),
        limits=machines(fake=4, used=2),
    )
    first_one, waits = plan(plans)
    assert first_one == Start(1, "mp-a")
    assert waits.cause.expected_s == NOW + 3 * HOUR


# A cluster of four nodes, of which a job that names it may ask for some; it stays on for an hour.
WIDE = KeptCluster("mp-w", 1, "fake", 4, "f", machines=(("nodes", 4.0),), keeps_s=HOUR)
SOON = RunningJob(-1, shape(4, "fake"), NOW + HOUR, cluster="mp-w", kept="mp-w")


def names(number: int = 2, lasts_s: float | None = 2 * HOUR, port: int = 22_222) -> QueuedJob:
    return guest(number, lasts_s, wish=Wish(1, 2, port, cluster="mp-w"), rank=2)


def expected_s(plans: Snapshot, number: int) -> float | None:
    cause = of(number, plans).cause
    assert isinstance(cause, NoRoom)
    return cause.expected_s


def wide(*queued: QueuedJob, total: int = 4, **fields: Any) -> Snapshot:
    given = {"running": (SOON,), "limits": machines(fake=total, used=4), "kept": (WIDE,), **fields}
    return snapshot(*queued, **given)


def test_after_a_job_that_says_nothing_a_cluster_stays_on_for_as_long_as_it_did_before():
    assert expected_s(wide(names(), first(3)), 1) == NOW + 3 * HOUR


def test_a_cluster_is_free_when_the_last_of_its_guests_has_ended():
    long = replace(SOON, ends_s=NOW + 9 * HOUR, kept="")
    on_it = replace(WIDE, guests=[Guest(9, 30_000, wants_gpus=False)])
    assert expected_s(wide(names(), first(3), running=(long,), kept=(on_it,)), 1) == NOW + 9 * HOUR


def test_a_guest_of_some_of_its_nodes_puts_off_all_of_them():
    """Eight nodes, of which five are wanted: three are left beside them, and not four."""
    waits = replace(first(5, rank=3), since_s=NOW)
    small = QueuedJob(3, shape(1, "fake"), project_id=3)
    plans = wide(waits, names(), small, total=8, limits=machines(fake=8, used=4))
    started = [each.job_id for each in plan(plans) if isinstance(each, Start)]
    assert started == [2]
    assert 3 in [
        each.job_id for each in plan(wide(waits, small, total=8)) if isinstance(each, Start)
    ]


def test_two_guests_of_one_cluster_put_its_machines_off_once():
    """In two hours seven nodes are left beside the first: three without those of the cluster."""
    waits = first(11, rank=3)
    both = names(2), names(3, port=30_000)
    small = [QueuedJob(each, shape(1, "fake"), project_id=3) for each in range(4, 9)]
    running = (SOON, RunningJob(7, shape(8, "fake"), NOW + 2 * HOUR))
    limits = machines(fake=18, used=12)
    assert started(wide(waits, *both, *small, running=running, limits=limits)) == [2, 3, 4, 5, 6]
