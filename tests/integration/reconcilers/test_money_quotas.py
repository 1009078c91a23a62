"""Quotas of money: prices are requested once, running jobs count at their cost, nothing more."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from jobs.actions.sharing.quotas import Whose, set_quota
from jobs.backends.base import Plan
from jobs.errors import BackendError, BackendUnavailableError, StillLookingError
from jobs.models import Cluster, ExpectedPrice, Job, Project
from jobs.permissions import Actor
from jobs.readers.queue_state import QueueState
from jobs.reconcilers import prices, queue
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job, make_project, make_spec, make_user
from tests.integration.reconcilers.steps import later
from tests.integration.reconcilers.test_quotas_hold import end, no_hints, there

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("fake", "no_hints"),
    pytest.mark.feature("P5.1"),
]
__all__ = ["no_hints"]


@pytest.fixture
def root(db) -> Actor:
    return Actor(make_user(is_superuser=True))


@pytest.fixture
def hints(monkeypatch) -> list[str]:
    """Record the reconcilers that are woken, in order."""
    sent: list[str] = []
    for module in (prices, queue):
        for sender in ("wake", "wake_later"):
            monkeypatch.setattr(module, sender, lambda name, *_, **__: sent.append(name))
    return sent


@pytest.fixture
def requested(fake, monkeypatch) -> list[int]:
    """Record the nodes of each price request, in order."""
    found: list[int] = []
    plan = type(fake).plan

    def watched(self: Any, spec: dict[str, Any]) -> Plan:
        found.append(spec["num_nodes"])
        return plan(self, spec)

    monkeypatch.setattr(type(fake), "plan", watched)
    return found


def queued(project: Project, nodes: int = 1, **fields: Any) -> Job:
    spec = make_spec(num_nodes=nodes)
    return make_job(project, backend_name="fake", num_nodes=nodes, spec=spec, **fields)


def limit(root: Actor, project: Project, usd: float) -> None:
    set_quota(root, Whose(project=project.slug), {"usd_per_hour": usd})


def why(job: Job) -> str:
    queue.run_pass()
    job.refresh_from_db()
    return job.message


def answers(monkeypatch, fake, error: Exception) -> None:
    def refuse(*_: object) -> Plan:
        raise error

    monkeypatch.setattr(type(fake), "plan", refuse)


def test_a_job_waits_for_its_price_and_starts_when_it_is_there(fake, root, project, hints):
    fake.set_price("3.00")
    limit(root, project, 10)
    job = queued(project, 2)
    assert why(job) == "Its price is being requested."
    assert hints == ["prices"], "the pass requests it at once"
    prices.step()
    assert hints == ["prices", "queue"], "and so the next pass comes at once"
    assert ExpectedPrice.objects.get().usd_per_hour == Decimal("6.00")
    queue.run_pass()
    assert there() == [job]


def test_without_a_quota_of_money_no_backend_is_queried_and_nothing_waits(
    fake, root, project, requested
):
    set_quota(root, Whose(project=project.slug), {"jobs": 5})
    job = queued(project)
    prices.step()
    queue.run_pass()
    assert (there(), requested) == ([job], [])


def test_equal_machines_are_requested_once(fake, root, project, requested):
    limit(root, project, 10)
    for nodes in (1, 1, 1, 2, 2):
        queued(project, nodes)
    queued(make_project("other"), 3)
    for _ in range(3):
        prices.step()
    assert sorted(requested) == [1, 2]


def test_two_that_start_in_one_pass_both_count(fake, root, project):
    fake.set_price("4.00")
    limit(root, project, 10)
    jobs = [queued(project) for _ in range(3)]
    prices.step()
    queue.run_pass()
    assert set(there()) == set(jobs[:2])
    assert why(jobs[2]) == "Needs $4.00 an hour; $2.00 of $10.00 is left in project rl."


def test_what_runs_counts_for_what_its_cluster_costs(fake, root, project):
    fake.set_price("1.00")
    limit(root, project, 10)
    first, second = queued(project), queued(project)
    prices.step()
    set_quota(root, Whose(project="rl"), {"usd_per_hour": 10, "jobs": 1})
    queue.run_pass()
    assert there() == [first]
    # It has landed on machines that cost more than was expected.
    Cluster.objects.update(usd_per_hour=Decimal("9.50"))
    limit(root, project, 10)
    assert why(second) == "Needs $1.00 an hour; $0.50 of $10.00 is left in project rl."
    (row,) = QueueState(root).quotas()
    assert [each.words for each in row.amounts] == ["$9.50 of $10.00 per hour"]
    assert row.amounts[0].used == 9.5


def test_jobs_on_one_cluster_count_for_it_once_together(root, project):
    limit(root, project, 10)
    first = queued(project, status=JobStatus.RUNNING)
    cluster = make_attempt(first).cluster
    make_attempt(queued(project, status=JobStatus.RUNNING), cluster=cluster)
    Cluster.objects.update(usd_per_hour=Decimal("7.00"))
    (row,) = QueueState(root).quotas()
    assert [each.used for each in row.amounts] == [7.0]


def test_nothing_starts_beside_a_job_whose_price_is_unknown(fake, root, project):
    old = queued(project, status=JobStatus.RUNNING)
    make_attempt(old)
    limit(root, project, 10)
    new = queued(project, 2)
    job = Job.objects.get(pk=new.pk)
    ExpectedPrice.objects.create(
        backend_name="fake",
        price_key=job.price_key,
        usd_per_hour=1,
        ask_again_at=job.created_at + timedelta(hours=1),
    )
    reported = f"The price of job {old.pk}, which counts in the same quota, is being requested."
    assert why(new) == reported
    prices.step()
    queue.run_pass()
    assert new in there()


def test_machines_of_ones_own_cost_nothing(settings, root, project, requested):
    settings.MPORTAL_LOCAL_BACKEND = True
    limit(root, project, 0)
    job = queued(project)
    Job.objects.filter(pk=job.pk).update(backend_name="local")
    prices.step()
    assert ExpectedPrice.objects.get().usd_per_hour == 0
    assert not requested


def test_a_backend_that_is_away_is_queried_again_ever_more_rarely(
    fake, root, project, monkeypatch, hints, time_machine
):
    limit(root, project, 10)
    job, other = queued(project), queued(project, 2)
    with monkeypatch.context() as away:
        answers(away, fake, BackendUnavailableError("SkyPilot is away."))
        prices.step()
        for each in (job, other):
            assert (
                why(each)
                == "Its price, which a quota counts, is being requested again. SkyPilot is away."
            )
        waits = []
        for _ in range(4):
            row = ExpectedPrice.objects.order_by("pk")[0]
            begin = row.ask_again_at
            time_machine.move_to(begin + timedelta(seconds=0.1))
            hints.clear()
            prices.step()
            assert "queue" not in hints, "the same answer is no news"
            row.refresh_from_db()
            waits.append(round((row.ask_again_at - begin).total_seconds()))
        assert waits == [4, 8, 16, 32]
    later(time_machine, minutes=1)
    prices.step()
    queue.run_pass()
    assert set(there()) == {job, other}


def test_while_a_backend_is_busy_the_query_is_repeated_soon(
    fake, root, project, monkeypatch, hints
):
    limit(root, project, 10)
    job = queued(project)
    answers(monkeypatch, fake, StillLookingError("It looks."))
    prices.step()
    assert hints == ["prices"]
    assert why(job) == "Its price is being requested."


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (BackendError("There is no GPU X9."), "There is no GPU X9."),
        (ValueError("odd"), "The portal failed to request the price: ValueError: odd"),
        (None, "Nothing that could run this job was found. Try more clouds."),
    ],
)
def test_an_unknown_price_is_reported_as_unknown(fake, root, project, monkeypatch, answer, said):
    limit(root, project, 10)
    job = queued(project)
    if answer is None:
        monkeypatch.setattr(type(fake), "plan", lambda *_: Plan(reasons=("Try more clouds.",)))
    else:
        answers(monkeypatch, fake, answer)
    prices.step()
    assert why(job) == f"Its price, which a quota counts, is being requested again. {said}"


def test_an_old_price_counts_until_there_is_a_new_one(
    fake, root, project, monkeypatch, time_machine
):
    fake.set_price("4.00")
    limit(root, project, 3)
    job = queued(project)
    prices.step()
    later(time_machine, hours=1, seconds=1)
    with monkeypatch.context() as away:
        answers(away, fake, BackendUnavailableError("SkyPilot is away."))
        prices.step()
    assert why(job) == "Needs $4.00 an hour; $3.00 of $3.00 is left in project rl."
    fake.set_price("2.00")
    later(time_machine, seconds=3)
    prices.step()
    queue.run_pass()
    assert there() == [job]


def test_jobs_from_before_there_were_prices_get_theirs(fake, root, project):
    limit(root, project, 10)
    job = queued(project)
    Job.objects.update(price_key="")
    prices.step()
    queue.run_pass()
    assert there() == [job]


def test_a_price_that_was_not_requested_for_a_week_is_forgotten(fake, root, project, time_machine):
    limit(root, project, 10)
    job = queued(project)
    prices.step()
    queue.run_pass()
    job.refresh_from_db()
    end(job)
    later(time_machine, days=8)
    prices.step()
    assert not ExpectedPrice.objects.exists()
