"""Real passes over the fake backend: no limit is ever exceeded, whatever is submitted and ends."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from jobs.actions.jobs.prioritize import prioritize_job
from jobs.actions.sharing.queues import QueueChange, set_queue
from jobs.actions.sharing.quotas import Whose, set_quota, set_weight
from jobs.lifecycle import move
from jobs.models import Cluster, Job, Pool, Project, Queue, User
from jobs.permissions import Actor
from jobs.readers.queue_state import QueueState
from jobs.reconcilers import prices, queue
from jobs.statuses import ClusterStatus, JobStatus, StopReason
from tests.factories import make_job, make_member, make_project, make_spec, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake", "no_hints")]

ROUNDS, STEPS = 6, 12
Holds = Callable[[Job], bool]


@pytest.fixture
def no_hints(monkeypatch) -> None:
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


@pytest.fixture
def root(db) -> Actor:
    return Actor(make_user(is_superuser=True))


@pytest.fixture
def people(db) -> list[tuple[Project, User]]:
    """Create two projects with two people each."""
    projects = make_project("rl"), make_project("evals")
    return [(project, make_member(project)) for project in projects for _ in range(2)]


@pytest.fixture
def night(db) -> Queue:
    pool = Pool.objects.create(name="big", backend_name="fake", caps={"nodes": 10, "gpus:H100": 40})
    return Queue.objects.create(name="night", rank=2, pool=pool)


def queued(project: Project, user: User, nodes: int = 1, **fields: Any) -> Job:
    gpus, portal = fields.pop("gpus", ""), fields.pop("portal", {})
    resources = {"resources": {"accelerators": gpus}} if gpus else {}
    spec = make_spec(num_nodes=nodes, portal=portal, **resources)
    return make_job(project, submitted_by=user, num_nodes=nodes, spec=spec, **fields)


def there() -> list[Job]:
    return list(Job.objects.unfinished().exclude(status=JobStatus.QUEUED))


def end(job: Job) -> None:
    """End the job and terminate its machines."""
    Cluster.objects.filter(attempts__job=job).update(status=ClusterStatus.GONE)
    job.attempts.update(ended_at=job.created_at)
    move(job, JobStatus.FAILED, reason=StopReason.USER_CODE, message="It ended.")


def used(jobs: list[Job]) -> Counter[str]:
    """Return the jobs' usage, counted by this test itself."""
    total: Counter[str] = Counter()
    for job in jobs:
        total += Counter({"jobs": 1, "nodes": job.num_nodes})
        if job.gpu_count:
            total += Counter({"gpus": job.gpu_count, f"gpus:{job.gpu_type}": job.gpu_count})
    return total


def random_job(chance: random.Random, people: list[tuple[Project, User]]) -> None:
    project, user = chance.choice(people)
    grouped = {"concurrency": {"group": "exclusive", "max": 2}} if chance.random() < 0.3 else {}
    queued(
        project,
        user,
        chance.randint(1, 4),
        gpus=chance.choice(["", "H100:4", "A100:2"]),
        queue_name=chance.choice(["default", "night"]),
        priority=chance.randint(0, 100),
        portal=grouped,
    )


@pytest.fixture
def limits(root, people, night) -> list[tuple[dict[str, int], Holds]]:
    """Create a quota of each kind, as administrators do; return limits and the jobs of each."""
    (rl, ana), _, (evals, _), _ = people
    in_rl: Holds = lambda job: job.project_id == rl.pk  # noqa: E731
    at_night: Holds = lambda job: job.queue_name == "night"  # noqa: E731
    set_ones: list[tuple[Whose, dict[str, int], Holds]] = [
        (Whose(queue="night"), {"jobs": 3}, at_night),
        (Whose(project="rl"), {"nodes": 8, "gpus": 20}, in_rl),
        (Whose(project="rl", pool="big"), {"gpus:H100": 8}, lambda j: in_rl(j) and at_night(j)),
        (
            Whose(project="rl", user=ana.get_username()),
            {"jobs": 1},
            lambda job: in_rl(job) and job.submitted_by_id == ana.pk,
        ),
    ]
    for whose, caps, _ in set_ones:
        # Types of GPUs are written as one likes.
        set_quota(root, whose, {what.lower(): amount for what, amount in caps.items()})
    set_quota(root, Whose(project="evals", per_person=True), {"nodes": 5})
    held = [(caps, holds) for _, caps, holds in set_ones]
    held += [
        ({"nodes": 5}, lambda job, who=user.pk: job.submitted_by_id == who)
        for project, user in people
        if project == evals
    ]
    held.append(({"nodes": 10, "gpus:H100": 40}, at_night))  # the pool
    held.append(({"nodes": 16}, lambda _: True))  # the backend
    return held


def groups(jobs: list[Job]) -> Iterator[int]:
    """Yield the number of running jobs in each group of each project."""
    by_group: dict[tuple[int, str], int] = defaultdict(int)
    for job in jobs:
        if job.group_name:
            by_group[job.project_id, job.group_name] += 1
    yield from by_group.values()


@pytest.mark.feature("P5.1")
@pytest.mark.feature("P5.3")
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_no_pass_ever_exceeds_a_quota_a_pool_or_a_group(fake, people, limits, seed):
    fake.set_capacity(16)
    chance = random.Random(seed)
    most_seen = 0
    for _ in range(STEPS):
        for _ in range(chance.randint(0, 5)):
            random_job(chance, people)
        running = there()
        for job in chance.sample(running, chance.randint(0, len(running))):
            end(job)
        queue.run_pass()
        running = there()
        most_seen = max(most_seen, len(running))
        for caps, holds in limits:
            taken = used([job for job in running if holds(job)])
            assert all(taken[what] <= cap for what, cap in caps.items()), (caps, taken)
        assert all(count <= 2 for count in groups(running))
    assert most_seen > 2, "nothing ran, so nothing was shown"


@pytest.mark.feature("P5.1")
def test_what_is_shown_as_used_is_what_runs(fake, root, people, limits):
    fake.set_capacity(16)
    chance = random.Random(7)
    for _ in range(30):
        random_job(chance, people)
    queue.run_pass()
    shown = next(row for row in QueueState(root).quotas() if row.kind == "project" and not row.pool)
    mine = used([job for job in there() if job.project.slug == "rl"])
    assert {each.what: each.used for each in shown.amounts} == {
        "nodes": mine["nodes"],
        "gpus": mine["gpus"],
    }


@pytest.mark.feature("P5.1")
def test_a_quota_that_grows_lets_the_next_start_and_one_that_shrinks_ends_nothing(
    root, people, fake
):
    (project, user), *_ = people
    set_quota(root, Whose(project="rl"), {"jobs": 1})
    for _ in range(3):
        queued(project, user)
    for most, run in ((1, 1), (2, 2), (0, 2), (3, 3)):
        set_quota(root, Whose(project="rl"), {"jobs": most})
        queue.run_pass()
        assert len(there()) == run


@pytest.mark.feature("P5.3")
def test_of_a_group_only_so_many_run_at_once(people, fake):
    (project, user), *_ = people
    jobs = [
        queued(project, user, portal={"concurrency": {"group": "sweep", "max": 2}})
        for _ in range(5)
    ]
    alone = queued(project, user)
    for ended in range(4):
        queue.run_pass()
        running = [job.pk for job in there()]
        assert alone.pk in running and len(running) == min(3, 1 + len(jobs) - ended)
        end(Job.objects.get(pk=jobs[ended].pk))


@pytest.mark.feature("P5.3")
def test_a_priority_that_is_raised_changes_who_starts_next(people, root, fake):
    fake.set_capacity(1)
    (project, user), *_ = people
    first, second, third = (queued(project, user) for _ in range(3))
    prioritize_job(root, third, 90)
    started = []
    for _ in range(3):
        queue.run_pass()
        (job,) = there()
        started.append(job.pk)
        end(job)
    assert started == [third.pk, first.pk, second.pk]


@pytest.mark.feature("P5.3")
def test_a_queue_of_a_higher_rank_goes_first_whatever_was_used(people, root, night, fake):
    fake.set_capacity(1)
    (rl, ana), _, (evals, eve), _ = people
    late = set_queue(root, "urgent", QueueChange(rank=9, pool="big"))
    low = queued(evals, eve, queue_name="night", priority=100)
    high = queued(rl, ana, queue_name=late.name, priority=0)
    queue.run_pass()
    assert [job.pk for job in there()] == [high.pk]
    end(there()[0])
    queue.run_pass()
    assert [job.pk for job in there()] == [low.pk]


@pytest.mark.feature("P5.2")
def test_with_weights_the_starts_come_in_their_proportion(people, root, fake):
    """Start jobs at weights of three to one: usage is divided by the weight."""
    fake.set_capacity(8)
    (rl, ana), _, (evals, eve), _ = people
    set_weight(root, "rl", 3)
    for _, (project, user) in itertools.product(range(12), ((rl, ana), (evals, eve))):
        queued(project, user)
    queue.run_pass()
    assert Counter(job.project.slug for job in there()) == {"rl": 6, "evals": 2}


@pytest.mark.feature("P5.1")
@pytest.mark.parametrize("seed", range(4))
def test_no_pass_ever_exceeds_a_quota_of_money(fake, root, people, seed):
    fake.set_price("1.10")
    fake.set_capacity(30)
    caps = {"rl": 7.7, "evals": 3.3}
    for slug, usd in caps.items():
        set_quota(root, Whose(project=slug), {"usd_per_hour": usd})
    chance = random.Random(seed)
    most_seen = 0
    for _ in range(12):
        for _ in range(chance.randint(0, 4)):
            project, user = chance.choice(people)
            queued(project, user, chance.randint(1, 4))
        running = there()
        for job in chance.sample(running, chance.randint(0, len(running))):
            end(job)
        prices.step()
        queue.run_pass()
        most_seen = max(most_seen, len(there()))
        for slug, usd in caps.items():
            nodes = sum(job.num_nodes for job in there() if job.project.slug == slug)
            assert nodes * Decimal("1.10") <= Decimal(str(usd))
    assert most_seen > 2, "nothing ran, so nothing was shown"
