"""The clusters page, that of all clusters, and the infra page."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from jobs.backends.base import CloudState, GpuState
from jobs.backends.fake.backend import FakeBackend
from jobs.models import Cluster, Job, StrayCluster
from jobs.reconcilers import infra as infra_reconciler
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_attempt, make_job, make_user
from tests.integration.web.conftest import Browser, browser_of, text_of

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
    text = viewer.text("/rl/clusters")
    for words in (
        "ppo",
        f"#{job.pk}",
        "mpx-warm",
        "Idle",
        "slurm/main",
        "2x(H100:8)",
        "idle 7 m",
        "$2.50",
        "$1.75",
        "$0.25 idle",
        "1 cluster",
    ):
        assert words in text, words
    assert "Terminate" not in text


def test_without_machines_it_says_that_nothing_is_paid_for(viewer):
    assert "pays for none" in viewer.text("/rl/clusters")


def test_the_live_parts_are_those_of_the_page(viewer, job):
    page = viewer.get("/rl/clusters").content.decode()
    parts = viewer.get("/rl/clusters/live").content.decode()
    row = parts[parts.index("<tr id=") : parts.index("</tr>", parts.index("<tr id="))]
    assert row.split("<time")[0] in page


def test_a_maintainer_takes_an_idle_cluster_down(maintainer, job):
    assert "Terminate" in maintainer.text("/rl/clusters")
    answer = maintainer.post("/rl/clusters/down", {"name": "mpx-warm"}, follow=True)
    assert "mpx-warm is being terminated." in text_of(answer)
    assert Cluster.objects.get().release_requested_at is not None


def test_an_idle_cluster_is_kept_an_hour_more(maintainer, job):
    assert "Keep 1 h" in maintainer.text("/rl/clusters")
    answer = maintainer.post("/rl/clusters/extend", {"name": "mpx-warm"}, follow=True)
    assert "waits an hour more" in text_of(answer)
    assert Cluster.objects.get().idle_policy["until"]


def test_who_made_a_cluster_takes_it_down(member, project, viewer):
    job = make_job(project, status=JobStatus.SUCCEEDED, submitted_by=member.user)
    attempt = make_attempt(job, ended_at=timezone.now())
    Cluster.objects.update(status=ClusterStatus.UP)
    name = {"name": attempt.cluster.name}
    assert "Terminate" in member.text("/rl/clusters") and "Terminate" not in viewer.text(
        "/rl/clusters"
    )
    assert viewer.post("/rl/clusters/down", name).status_code == 403
    assert "is being terminated" in text_of(member.post("/rl/clusters/down", name, follow=True))


def test_a_cluster_in_use_says_so_and_stays(maintainer, project):
    attempt = make_attempt(make_job(project, status=JobStatus.RUNNING))
    Cluster.objects.update(status=ClusterStatus.UP)
    text = maintainer.text("/rl/clusters")
    assert "In use" in text and "Terminate" not in text
    name = attempt.cluster.name
    answer = maintainer.post("/rl/clusters/down", {"name": name}, follow=True)
    assert "cancel the job" in text_of(answer)


def test_what_has_no_row_is_shown_to_administrators_alone(admin, root, job, strays):
    assert "theirs" not in admin.text("/settings/clusters")
    text = root.text("/settings/clusters")
    for words in ("mpx-warm", "mpx-lost", "theirs", "eve", "$98.32"):
        assert words in text, words
    html = root.get("/settings/clusters").content.decode()
    assert 'value="mpx-lost"' in html and 'value="theirs"' not in html


def test_an_administrator_takes_a_quarantined_cluster_down_and_no_strangers(root, strays):
    path = "/settings/clusters/down"
    assert "is being terminated" in text_of(root.post(path, {"name": "mpx-lost"}, follow=True))
    assert "root has it taken down" in root.text("/settings/clusters")
    answer = root.post(path, {"name": "theirs"}, follow=True)
    assert "not this portal's" in text_of(answer).replace("&#x27;", "'")


@pytest.fixture
def fake(settings, tmp_path, redis_client, monkeypatch) -> Any:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    monkeypatch.setattr(infra_reconciler, "wake_later", lambda *_, **__: None)
    monkeypatch.setattr("jobs.readers.infra.wake", lambda *_: None)
    return FakeBackend


def test_the_infra_page_asks_first_and_then_shows_clouds_reasons_and_free_gpus(
    viewer, fake, monkeypatch
):
    reason = "No credentials. Run `aws configure`."
    clouds = [CloudState("AWS", False, reason), CloudState("Slurm", True)]
    gpus = [GpuState("slurm/main", "node1", "H100", 8, 5)]
    monkeypatch.setattr(fake, "clouds", lambda *_: clouds)
    monkeypatch.setattr(fake, "gpus", lambda *_: gpus)
    assert "checking …" in viewer.text("/rl/infra")
    infra_reconciler.step()
    text = viewer.text("/rl/infra")
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
