"""The machines of a project and of all projects: what exists, who has it, what is free."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.backends.base import CloudState, GpuState
from jobs.backends.fake.backend import FakeBackend
from jobs.models import Cluster, Job, StrayCluster
from jobs.reconcilers import autostop
from jobs.reconcilers import infra as infra_reconciler
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_attempt, make_job, make_user
from tests.integration.web.conftest import Browser, browser_of, text_of
from tests.sample_frames import tell_of_use

SEEN = {"status": "UP", "infra": "aws", "num_nodes": 2, "usd_per_hour": "98.32", "owner": "eve"}


@pytest.fixture
def job(project) -> Job:
    job = make_job(project, name="ppo", status=JobStatus.SUCCEEDED)
    now = timezone.now()
    attempt = make_attempt(job, ended_at=now, usd=Decimal("1.50"))
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        name="mpx-warm",
        status=ClusterStatus.UP,
        idle_since=now - timedelta(minutes=7),
        idle_policy={"minutes": 12},
        is_reusable=True,
        infra="slurm/main",
        resources="2x(H100:8)",
        usd_per_hour=Decimal("2.5"),
        usd=Decimal("1.75"),
    )
    return job


@pytest.fixture
def strays() -> None:
    StrayCluster.objects.create(name="mpx-lost", backend_name="fake", kind="own", seen=SEEN)
    StrayCluster.objects.create(name="theirs", backend_name="fake", kind="foreign", seen=SEEN)


@pytest.fixture
def root(project) -> Browser:
    return browser_of(make_user("root", is_superuser=True))


def test_it_says_what_exists_where_since_when_and_at_what_cost(viewer, job):
    text = viewer.text("/rl/machines")
    for words in (
        "ppo",
        f"#{job.pk}",
        "mpx-warm",
        "Idle",
        "slurm/main",
        "2x(H100:8)",
        "idle 7 min",
        "ends in 5 min",
        "$2.50",
        "$1.75",
        "$0.25 idle",
        "1 cluster",
    ):
        assert words in text, words
    assert "Terminate" not in text


@pytest.mark.parametrize("is_requested", [True, False])
def test_machines_of_an_ended_job_are_ending_and_cannot_be_terminated_again(
    member, project, fake, tmp_path, is_requested
):
    FakeBackend(tmp_path / "fake").set_capacity(4)
    now = timezone.now()
    # The cluster is released with the last change of the job's status, shortly after its end.
    status = JobStatus.SUCCEEDED if is_requested else JobStatus.RUNNING
    attempt = make_attempt(make_job(project, status=status), ended_at=now)
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        backend_name="fake",
        status=ClusterStatus.UP,
        num_nodes=3,
        release_requested_at=now if is_requested else None,
    )
    page = member.text("/rl/machines")
    assert "Terminating" in page
    assert "3 nodes ending" in page
    assert "Idle" not in page
    assert "Terminate " not in page
    if is_requested:
        assert "3 nodes are ending." in member.text("/rl")
        assert "Nodes that are ending: 3" in page


def test_without_machines_it_says_that_nothing_is_paid_for(viewer):
    assert "pays for none" in viewer.text("/rl/machines")


def test_the_live_parts_are_those_of_the_page(viewer, job):
    page = viewer.get("/rl/machines").content.decode()
    parts = viewer.get("/rl/machines/live").content.decode()
    row = parts[parts.index("<tr id=") : parts.index("</tr>", parts.index("<tr id="))]
    assert row.split("<time")[0] in page


def test_a_maintainer_takes_an_idle_cluster_down(maintainer, job):
    assert "Terminate" in maintainer.text("/rl/machines")
    answer = maintainer.post("/rl/machines/down", {"name": "mpx-warm"}, follow=True)
    assert "mpx-warm is being terminated." in text_of(answer)
    assert Cluster.objects.get().release_requested_at is not None


def test_an_idle_cluster_is_kept_an_hour_more(maintainer, job):
    assert "Keep 1 h" in maintainer.text("/rl/machines")
    answer = maintainer.post("/rl/machines/extend", {"name": "mpx-warm"}, follow=True)
    assert "waits an hour more" in text_of(answer)
    assert Cluster.objects.get().idle_policy["until"]


def test_an_idle_cluster_is_stopped_unless_its_infrastructure_keeps_no_disks(
    maintainer, job, fake, tmp_path
):
    Cluster.objects.update(backend_name="fake")
    backend = FakeBackend(tmp_path / "fake")
    backend.refuse_stop("Slurm keeps no disks.")
    answer = maintainer.post("/rl/machines/stop", {"name": "mpx-warm"}, follow=True)
    assert "cannot be stopped: Slurm keeps no disks. Terminate it instead." in text_of(answer)
    assert Cluster.objects.get().status == ClusterStatus.UP
    backend.refuse_stop("")
    answer = maintainer.post("/rl/machines/stop", {"name": "mpx-warm"}, follow=True)
    assert "is being stopped; its disks are kept." in text_of(answer)
    assert Cluster.objects.get().status == ClusterStatus.STOPPING
    autostop.step(Cluster.objects.get().pk)
    answer = maintainer.post("/rl/machines/stop", {"name": "mpx-warm"}, follow=True)
    assert "is not up and idle" in text_of(answer)


def test_rows_show_gpus_their_use_owners_and_how_to_log_in(viewer, member, project):
    job = make_job(
        project,
        status=JobStatus.RUNNING,
        submitted_by=member.user,
        backend_name="skypilot",
        num_nodes=4,
        gpu_type="H100",
        gpu_count=32,
    )
    tell_of_use(make_attempt(job), [90, 2], idle_min=40)
    Cluster.objects.update(status=ClusterStatus.UP, name="mp-one", usd_per_hour=Decimal(80))
    text = viewer.text("/rl/machines")
    for words in (
        "4 x H100:8",
        "2 %",
        "idle 40 min",
        "mia",
        "ssh mp-one",
        "32 GPUs",
        "$80.00 an hour",
    ):
        assert words in text, words


def test_old_addresses_lead_here(viewer, project):
    assert viewer.get("/rl/clusters")["Location"] == "/rl/machines"
    assert viewer.get("/rl/infra")["Location"] == "/rl/machines"
    assert viewer.get("/settings/clusters")["Location"] == "/settings/machines"


def test_the_page_takes_as_many_queries_for_many_clusters_as_for_one(
    viewer, project, django_assert_num_queries
):
    def make_one() -> None:
        tell_of_use(make_attempt(make_job(project, status=JobStatus.RUNNING)), [50])

    make_one()
    viewer.get("/rl/machines")
    with CaptureQueriesContext(connection) as one:
        viewer.get("/rl/machines")
    for _ in range(5):
        make_one()
    with django_assert_num_queries(len(one)):
        viewer.get("/rl/machines")


def test_who_made_a_cluster_takes_it_down(member, project, viewer):
    job = make_job(project, status=JobStatus.SUCCEEDED, submitted_by=member.user)
    attempt = make_attempt(job, ended_at=timezone.now())
    Cluster.objects.update(status=ClusterStatus.UP, is_reusable=True)
    name = {"name": attempt.cluster.name}
    assert "Terminate" in member.text("/rl/machines") and "Terminate" not in viewer.text(
        "/rl/machines"
    )
    assert viewer.post("/rl/machines/down", name).status_code == 403
    assert "is being terminated" in text_of(member.post("/rl/machines/down", name, follow=True))


def test_a_cluster_in_use_says_so_and_stays(maintainer, project):
    attempt = make_attempt(make_job(project, status=JobStatus.RUNNING))
    Cluster.objects.update(status=ClusterStatus.UP)
    text = maintainer.text("/rl/machines")
    assert "In use" in text and "Terminate" not in text
    name = attempt.cluster.name
    answer = maintainer.post("/rl/machines/down", {"name": name}, follow=True)
    assert "cancel the job" in text_of(answer)


def test_what_has_no_row_is_shown_to_administrators_alone(admin, root, job, strays):
    assert "theirs" not in admin.text("/settings/machines")
    text = root.text("/settings/machines")
    for words in ("mpx-warm", "mpx-lost", "theirs", "eve", "$98.32"):
        assert words in text, words
    html = root.get("/settings/machines").content.decode()
    assert 'value="mpx-lost"' in html and 'value="theirs"' not in html


def test_an_administrator_takes_a_quarantined_cluster_down_and_no_strangers(root, strays):
    path = "/settings/machines/down"
    assert "is being terminated" in text_of(root.post(path, {"name": "mpx-lost"}, follow=True))
    assert "root has it taken down" in root.text("/settings/machines")
    answer = root.post(path, {"name": "theirs"}, follow=True)
    assert "not this portal's" in text_of(answer).replace("&#x27;", "'")


@pytest.fixture
def fake(settings, tmp_path, redis_client, monkeypatch) -> Any:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    monkeypatch.setattr(infra_reconciler, "wake_later", lambda *_, **__: None)
    monkeypatch.setattr("jobs.readers.infra.wake", lambda *_: None)
    return FakeBackend


def test_it_asks_backends_first_and_then_shows_clouds_reasons_and_free_gpus(
    viewer, fake, monkeypatch
):
    reason = "No credentials. Run `aws configure`."
    clouds = [CloudState("AWS", False, reason), CloudState("Slurm", True)]
    gpus = [GpuState("slurm/main", "node1", "H100", 8, 5)]
    monkeypatch.setattr(fake, "clouds", lambda *_: clouds)
    monkeypatch.setattr(fake, "gpus", lambda *_: gpus)
    assert "checking …" in viewer.text("/rl/machines")
    infra_reconciler.step()
    text = viewer.text("/rl/machines")
    for words in ("Slurm enabled", "AWS", "aws configure", "H100", "5 of 8", "asked just now"):
        assert words in text, words
    assert "16 nodes" in text


def test_the_plan_part_shows_prices_and_the_choice(member, fake, tmp_path):
    source = "num_nodes: 2\nrun: ./train\nportal: {max_duration: 10h}\n"
    text = text_of(member.post("/rl/jobs/plan", {"source": source}))
    assert "$2.40 an hour on fake ($24.00 at most, for 10 h 00 m)" in text
    assert "chosen" in text


def test_a_plan_of_something_wrong_says_so(member, project):
    text = text_of(member.post("/rl/jobs/plan", {"source": "num_node: 2\n"}))
    assert "Fix the problems" in text


def test_the_job_page_and_the_table_show_what_a_job_has_cost(viewer, job):
    assert "Cost $1.50" in viewer.text(f"/rl/jobs/{job.pk}")
    assert "$1.50" in viewer.text("/rl/jobs")


def test_a_table_without_costs_has_no_column_for_them(viewer, project):
    make_job(project)
    assert "Cost" not in viewer.text("/rl/jobs")
