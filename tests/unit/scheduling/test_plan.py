"""The plan of the queue: priority, first come first served, gangs whole, no starvation."""

from hypothesis import given
from hypothesis import strategies as st

from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import Capacity, QueuedJob, Refuse, Snapshot, Start, Wait


def started(snapshot: Snapshot) -> list[int]:
    return [decision.job_id for decision in plan(snapshot) if isinstance(decision, Start)]


def test_jobs_of_equal_priority_start_in_the_order_of_their_ids():
    snapshot = Snapshot((QueuedJob(2, "local", 1, 50), QueuedJob(1, "local", 1, 50)))
    assert started(snapshot) == [1, 2]


def test_a_higher_priority_starts_first():
    snapshot = Snapshot(
        (QueuedJob(1, "local", 1, 50), QueuedJob(2, "local", 1, 90)), {"local": Capacity(1)}
    )
    assert started(snapshot) == [2]


def test_a_job_gets_all_its_nodes_or_none_and_is_told_how_many_are_free():
    snapshot = Snapshot((QueuedJob(1, "local", 3, 50),), {"local": Capacity(4, used=2)})
    assert plan(snapshot) == [Wait(1, "Needs 3 nodes; 2 of 4 are free on local.")]


def test_a_small_job_never_overtakes_a_big_one_that_waits_for_room():
    snapshot = Snapshot(
        (QueuedJob(1, "local", 3, 50), QueuedJob(2, "local", 1, 50)),
        {"local": Capacity(4, used=2)},
    )
    assert plan(snapshot)[1] == Wait(2, "Waits behind job 1, which needs more room.")


def test_a_full_backend_holds_back_nobody_on_another():
    snapshot = Snapshot(
        (QueuedJob(1, "local", 1, 50), QueuedJob(2, "fake", 1, 50)), {"local": Capacity(1, used=1)}
    )
    assert started(snapshot) == [2]


def test_a_job_larger_than_the_whole_backend_is_refused_and_holds_back_nobody():
    snapshot = Snapshot(
        (QueuedJob(1, "local", 5, 50), QueuedJob(2, "local", 1, 50)), {"local": Capacity(4)}
    )
    assert plan(snapshot) == [Refuse(1, "Needs 5 nodes, but local has 4 in all."), Start(2)]


jobs = st.lists(
    st.builds(
        QueuedJob,
        st.integers(1, 10_000),
        st.sampled_from(["local", "fake"]),
        st.integers(1, 8),
        st.integers(0, 100),
    ),
    unique_by=lambda job: job.job_id,
)


@given(jobs, st.integers(0, 16), st.integers(0, 16))
def test_no_plan_ever_exceeds_the_room_and_every_job_gets_one_decision(queued, total, used):
    snapshot = Snapshot(tuple(queued), {"local": Capacity(total, used)})
    decisions = plan(snapshot)
    assert sorted(d.job_id for d in decisions) == sorted(j.job_id for j in queued)
    nodes = {job.job_id: job.num_nodes for job in queued if job.backend_name == "local"}
    taken = sum(nodes.get(d.job_id, 0) for d in decisions if isinstance(d, Start))
    assert taken <= max(0, total - used)
