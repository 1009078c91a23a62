"""The plan of the queue: priority, first come first served, gangs whole, no starvation."""

from jobs.scheduling.limits import Limit, LimitKind
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import QueuedJob, Refuse, Snapshot, Start, Wait
from jobs.statuses import WaitReason
from tests.unit.scheduling.shapes import machines, sentences, shape, started


def test_jobs_of_equal_priority_start_in_the_order_of_their_ids():
    snapshot = Snapshot((QueuedJob(2, shape()), QueuedJob(1, shape())), limits=machines(local=4))
    assert started(snapshot) == [1, 2]


def test_a_higher_priority_starts_first():
    queued = (QueuedJob(1, shape(), 50), QueuedJob(2, shape(), 90))
    assert started(Snapshot(queued, limits=machines(local=1))) == [2]


def test_a_job_gets_all_its_nodes_or_none_and_learns_how_many_are_free():
    snapshot = Snapshot((QueuedJob(1, shape(3)),), limits=machines(local=4, used=2))
    assert sentences(snapshot) == {1: "Needs 3 nodes; 2 of 4 are free on local."}


def test_a_small_job_never_overtakes_a_big_one_whose_start_is_unbounded():
    queued = (QueuedJob(1, shape(3)), QueuedJob(2, shape(1)))
    snapshot = Snapshot(queued, limits=machines(local=4, used=2))
    assert sentences(snapshot)[2] == "Waits behind job 1, for which the next machines are reserved."


def test_a_full_backend_holds_back_no_other_job_on_another():
    queued = (QueuedJob(1, shape(1)), QueuedJob(2, shape(1, "fake")))
    limits = {**machines(local=1, used=1), **machines(fake=1)}
    assert started(Snapshot(queued, limits=limits)) == [2]


def test_a_job_larger_than_the_whole_backend_is_refused_and_holds_back_no_other_job():
    queued = (QueuedJob(1, shape(5)), QueuedJob(2, shape(1)))
    snapshot = Snapshot(queued, limits=machines(local=4))
    assert plan(snapshot) == [Refuse(1, "Needs 5 nodes, but local has 4 in all."), Start(2)]


def test_a_job_larger_than_what_was_written_of_a_pool_waits_and_holds_back_no_other_job():
    limits = {**machines(local=8), "pool:big": Limit(LimitKind.POOL, "big", {"nodes": 4.0})}
    queued = (QueuedJob(1, shape(5, pool="big")), QueuedJob(2, shape(1, pool="big")))
    snapshot = Snapshot(queued, limits=limits)
    assert started(snapshot) == [2]
    assert sentences(snapshot)[1] == "Needs 5 nodes; 4 of 4 are free on big."


def test_a_job_over_a_quota_waits_and_holds_back_no_other_job():
    quota = Limit(LimitKind.PROJECT, "rl", {"nodes": 4.0}, {"nodes": 3.0})
    limits = {**machines(local=8), "quota": quota}
    queued = (QueuedJob(1, shape(2, limits=("quota",))), QueuedJob(2, shape(1)))
    snapshot = Snapshot(queued, limits=limits)
    assert started(snapshot) == [2]
    said = "Needs 2 nodes; project rl may have 4 nodes at once, and has 3."
    assert sentences(snapshot)[1] == said


def test_a_quota_that_was_lowered_to_nothing_loses_no_job():
    limits = {**machines(local=8), "quota": Limit(LimitKind.PROJECT, "rl", {"jobs": 0.0})}
    snapshot = Snapshot((QueuedJob(1, shape(2, limits=("quota",))),), limits=limits)
    said = "Project rl may run 0 jobs at once, and runs 0."
    assert sentences(snapshot) == {1: said}


def test_what_keeps_a_project_back_is_reported_and_holds_back_no_other_project():
    queued = (QueuedJob(1, shape(), project_id=1), QueuedJob(2, shape(), project_id=2))
    barred = {1: (WaitReason.BUDGET, "The budget of November is used up.")}
    snapshot = Snapshot(queued, limits=machines(local=1), barred=barred)
    assert started(snapshot) == [2]
    assert sentences(snapshot)[1] == "The budget of November is used up."


def test_a_backend_with_a_problem_keeps_its_jobs_waiting_and_says_it():
    snapshot = Snapshot(
        (QueuedJob(1, shape()),), limits=machines(local=1), problems={"local": "Out of order."}
    )
    assert sentences(snapshot) == {1: "Out of order."}


def test_the_same_queue_in_another_order_gives_the_same_plan():
    queued = [
        QueuedJob(number, shape(number % 3 + 1), number % 5, number % 4) for number in range(40)
    ]
    snapshot = Snapshot(tuple(queued), limits=machines(local=30))
    shuffled = Snapshot(tuple(reversed(queued)), limits=machines(local=30))
    assert plan(snapshot) == plan(shuffled)


def test_a_job_that_its_pool_can_never_hold_is_no_turn_of_its_project():
    limits = {**machines(local=8), "pool:big": Limit(LimitKind.POOL, "big", {"nodes": 4.0})}
    never = tuple(QueuedJob(n, shape(5, pool="big"), project_id=1) for n in (1, 2, 3))
    one = QueuedJob(4, shape(4, pool="big"), project_id=1)
    other = QueuedJob(5, shape(4, pool="big"), project_id=2)
    snapshot = Snapshot((*never, one, other), limits=limits)
    assert started(snapshot) == [4]
    (wait, *_) = (each for each in plan(snapshot) if each.job_id == 1)
    assert isinstance(wait, Wait)
    assert wait.cause.code == "no_room"
