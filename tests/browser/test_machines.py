"""Pages of clusters, places and plans in every look: fine for axe, and nothing sticks out."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from jobs.backends.base import Candidate, CloudState, GpuState, Plan
from jobs.backends.fake.backend import FakeBackend
from jobs.errors import StillLookingError
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Cluster, StrayCluster, Worker
from jobs.reconcilers import infra
from jobs.statuses import ClusterStatus, JobStatus
from tests.browser.editors import CodeEditor
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job
from tests.sample_frames import tell_of_use

CLOUDS = [
    CloudState("Slurm", is_enabled=True),
    CloudState("Kubernetes", is_enabled=True),
    CloudState("AWS", is_enabled=False, reason="No credentials. Run `aws configure`, or set them."),
    CloudState("GCP", is_enabled=False, reason="google-api-python-client is not installed."),
]
GPUS = [GpuState("slurm/main/gpu", f"node{n}", "H100", 8, n % 5) for n in range(12)]
GPUS += [GpuState("kubernetes/research", "k1", "A100-80GB", 8, 8)]
# Name, status, minutes since it was made, idle minutes, infra, resources, nodes, $/h, $ so far.
CLUSTERS: list[tuple[str, ClusterStatus, int, int | None, str, str, int, str, str]] = [
    ("grpo-math-7b", ClusterStatus.STARTING, 1, None, "", "", 4, "", ""),
    ("ppo-cartpole", ClusterStatus.UP, 187, None, "slurm/main/gpu", "4x(H100:8)", 4, "79.6", "248"),
    ("long-idle", ClusterStatus.UP, 95, None, "slurm/main/gpu", "1x(H100:8)", 1, "19.9", "31.5"),
    (
        "sft-baseline",
        ClusterStatus.UP,
        66,
        9,
        "aws/us-east-1",
        "2x(p5.48xlarge)",
        2,
        "196.6",
        "216",
    ),
    ("eval", ClusterStatus.STOPPED, 900, 80, "gcp/us-central1", "1x(g2-standard-8)", 1, "1", "3.1"),
    ("tokenize", ClusterStatus.STOPPING, 30, None, "slurm/main", "1x(64CPUs)", 1, "0", "0.0042"),
]
# GPU use in per cent, a point each half minute.
USES = {
    "ppo-cartpole": [20, 65, 88, 91, 86, 90, 93, 89, 40, 88, 92, 91, 90, 87],
    "sft-baseline": [70, 72, 71, 69, 74, 73, 70, 30, 71, 70],
    "long-idle": [80, 82, 81, 4, 0, 0, 0, 0, 0, 0, 0, 0],
}


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada) -> Camera:
    ada.is_superuser = True
    ada.save()
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


@pytest.fixture
def fake(settings, tmp_path, monkeypatch, redis_client) -> Any:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    monkeypatch.setattr(FakeBackend, "clouds", lambda *_: CLOUDS)
    monkeypatch.setattr(FakeBackend, "gpus", lambda *_: GPUS)
    monkeypatch.setattr(infra, "wake_later", lambda *_, **__: None)
    return FakeBackend


@pytest.fixture
def clusters(project, ada) -> None:
    now = timezone.now()
    for name, status, ago, idle, place, machines, nodes, price, usd in CLUSTERS:
        is_over = idle is not None or status == ClusterStatus.STOPPING
        job = make_job(
            project,
            name=name,
            num_nodes=nodes,
            submitted_by=ada,
            backend_name="skypilot",
            status=JobStatus.SUCCEEDED if is_over else JobStatus.RUNNING,
            started_at=now - timedelta(minutes=ago),
            gpu_type="H100" if "8" in machines[2:] else "",
            gpu_count=8 * nodes if "8" in machines[2:] else 0,
        )
        ended_at = now - timedelta(minutes=idle or 0) if is_over else None
        spent = Decimal(usd) if usd else None
        attempt = make_attempt(job, ended_at=ended_at, usd=spent and spent * 9 / 10)
        Cluster.objects.filter(pk=attempt.cluster_id).update(
            name=f"mp3fa9c1-7b20e4-{job.pk}-1",
            status=status,
            created_at=now - timedelta(minutes=ago),
            idle_since=now - timedelta(minutes=idle) if idle else None,
            infra=place,
            resources=machines,
            usd_per_hour=Decimal(price) if price else None,
            usd=spent,
            is_reusable=idle is not None,
            release_requested_at=now if status == ClusterStatus.STOPPING else None,
        )
        if name in USES:
            tell_of_use(attempt, USES[name], idle_min=40 if name == "long-idle" else 0)
        for rank in range(nodes):
            Worker.objects.create(
                attempt=attempt, rank=rank, status="RUNNING", address=f"10.0.0.{rank + 4}:22222"
            )
    seen = {"status": "UP", "infra": "aws/us-east-1", "num_nodes": 2, "usd_per_hour": "64.1"}
    seen |= {"launched_at": (now - timedelta(days=3)).isoformat(), "resources": "2x(p4d.24xlarge)"}
    StrayCluster.objects.create(
        name="mp3fa9c1-0c11d2-412-1", backend_name="skypilot", kind="own", seen=seen
    )
    StrayCluster.objects.create(
        name="sky-cmd-eve", backend_name="skypilot", kind="foreign", seen={**seen, "owner": "eve"}
    )


def candidate(infra_name: str, machine: str, price: str, **fields: Any) -> Candidate:
    given = {"use_spot": False, "is_chosen": False, **fields}
    return Candidate(
        infra_name, machine, "192", "2048", "H100:8", **given, usd_per_hour=Decimal(price)
    )


@pytest.mark.feature("P7.1")
def test_pages_of_machines_are_fine_for_axe_and_fit_their_width(
    camera, fake, clusters, project, monkeypatch
):
    camera.at("/rl/machines", "machines-asking", "#live-state[data-state=on]")
    camera.page.get_by_role("button", name="Stop mp3fa9c1").click()
    camera.take("cluster-stop")
    camera.page.get_by_role("button", name="Go back").click()
    camera.page.get_by_role("button", name="Terminate mp3fa9c1").first.click()
    camera.take("cluster-down")
    infra.step()
    camera.at("/rl/machines", "machines", ".gpus")
    camera.at("/settings/machines", "machines-all", ".gpus")
    camera.at("/rl/jobs", "table-with-costs", "#live-state[data-state=on]")
    job = project.jobs.get(name="ppo-cartpole")
    camera.at(f"/rl/jobs/{job.pk}/nodes", "workers-with-ssh", "#job-workers table")
    assert camera.problems == []


@pytest.mark.feature("P7.1")
def test_a_plan_is_fine_for_axe_and_says_what_it_costs(camera, fake, monkeypatch):
    page = camera.page
    camera.at("/rl/jobs/new", "plan-before", "#verdict .ok")
    answers = [StillLookingError("SkyPilot is asked.")]

    def plan(*_: object) -> Plan:
        if answers:
            raise answers.pop()
        return Plan(
            (
                candidate("slurm/main/gpu", "", "79.60", is_chosen=True),
                candidate("aws/us-east-1", "p5.48xlarge", "196.64", use_spot=True),
                candidate("gcp/us-central1-a", "a3-highgpu-8g", "176.02"),
            ),
            ("Azure: no credentials. Run `az login`.",),
        )

    monkeypatch.setattr(FakeBackend, "plan", plan)
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_text("Asking Fake for candidates").wait_for()
    page.get_by_text("$79.60 an hour on slurm/main/gpu").wait_for()
    page.locator("#plan").scroll_into_view_if_needed()
    camera.take("plan")
    CodeEditor(page).press("Space")
    assert page.locator("#plan").inner_text() == ""
    assert camera.problems == []


def test_the_machines_page_shows_what_becomes_of_a_cluster(page, fake, clusters, project):
    page.goto("/rl/machines")
    page.locator("#live-state[data-state=on]").wait_for()
    row = page.locator("tr", has_text="sft-baseline")
    row.get_by_text("Idle", exact=True).wait_for()
    row.get_by_role("button", name="Keep").click()
    page.get_by_text("waits an hour more").wait_for()
    row.get_by_role("button", name="Terminate").click()
    page.get_by_role("button", name="Terminate the cluster").click()
    page.get_by_text("is being terminated.").wait_for()
    page.locator("#live-state[data-state=on]").wait_for()
    cluster = Cluster.objects.get(infra="aws/us-east-1")
    Cluster.objects.filter(pk=cluster.pk).update(status=ClusterStatus.GONE)
    publish_clusters_on_commit(project.pk)
    row.wait_for(state="detached")
