"""The overview in every look: fine for axe, on one screen of a laptop, live, by keyboard."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, ViewportSize, expect

from jobs.lifecycle import move
from jobs.models import Cluster, Job, Membership, Pool, Project, User
from jobs.statuses import ClusterStatus, JobStatus, Role, StopReason
from tests.browser import team, team_queue
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job, make_project, set_default_queue
from tests.sample_frames import tell_of_use

LAPTOP = ViewportSize(width=1366, height=768)
STAYS_OUT = "document.documentElement.scrollHeight - document.documentElement.clientHeight"
# Name, nodes, GPU use in per cent, minutes for which its GPUs are idle.
RUNNING = (
    ("grpo-math-70b", 8, [60, 82, 88, 91, 86, 90, 93, 89, 40, 88, 92, 91, 90, 87], 0),
    ("sft-baseline", 4, [70, 72, 71, 69, 74, 73, 70, 30, 71, 70], 0),
    ("notebook-of-mia", 1, [80, 82, 81, 4, 0, 0, 0, 0, 0, 0], 40),
)
WAITS = (
    ("sweep-lr-3e-5", "CAPACITY", "Needs 8 nodes at once; 5 of 16 are free on a100."),
    ("dpo-ablation", "QUOTA", "Project rl may use 96 gpus at once and uses 96."),
    ("nightly-eval", "DEPENDENCY", "Waits for job 128 to succeed."),
)
FAILURES = (
    ("ppo-cartpole", StopReason.USER_CODE, "CUDA out of memory", 4),
    ("long-horizon", StopReason.WORKER_LOST, "", 2),
    ("tokenize-corpus", StopReason.SETUP, "", 1),
)


def make_fleet(project: Project, ada: User) -> None:
    """Create what a busy team has: jobs with GPUs, a warm cluster, failures, waiting jobs."""
    now = timezone.now()
    for name, nodes, use, idle_min in RUNNING:
        job = make_job(
            project,
            name=name,
            status=JobStatus.RUNNING,
            submitted_by=ada,
            backend_name="local",
            num_nodes=nodes,
            gpu_type="H100",
            gpu_count=8 * nodes,
            started_at=now - timedelta(minutes=187),
        )
        attempt = make_attempt(job, run_started_at=now - timedelta(minutes=180))
        tell_of_use(attempt, [float(each) for each in use], idle_min=idle_min)
        Cluster.objects.filter(pk=attempt.cluster_id).update(
            status=ClusterStatus.UP, usd_per_hour=Decimal("19.90") * nodes, usd=Decimal(60) * nodes
        )
    done = make_job(
        project, name="eval-suite", status=JobStatus.SUCCEEDED, submitted_by=ada, num_nodes=2,
        gpu_type="A100-80GB", gpu_count=16,
    )  # fmt: skip
    warm = make_attempt(done, ended_at=now - timedelta(minutes=4)).cluster_id
    Cluster.objects.filter(pk=warm).update(
        status=ClusterStatus.UP,
        usd_per_hour=Decimal("54.20"),
        is_reusable=True,
        idle_since=now - timedelta(minutes=4),
        idle_policy={"minutes": 30},
    )
    for name, reason, message in WAITS:
        make_job(project, name=name, submitted_by=ada, wait_reason=reason, message=message,
                 num_nodes=8, gpu_type="H100", gpu_count=64)  # fmt: skip
    for name, reason, title, times in FAILURES:
        for number in range(times):
            ended = {"ended_at": now - timedelta(hours=number + 1), "stop_reason": reason}
            job = make_job(project, name=name, status=JobStatus.FAILED, submitted_by=ada, **ended)
            attempt = make_attempt(
                job, ended_at=job.ended_at, diagnosis={"title": title} if title else {}
            )
            Cluster.objects.filter(pk=attempt.cluster_id).update(status=ClusterStatus.GONE)
    pool = Pool.objects.create(name="h100", backend_name="local", caps={"gpus:H100": 128})
    set_default_queue(pool=pool)
    Pool.objects.create(name="a100", backend_name="local", caps={"gpus:A100-80GB": 32})


@pytest.fixture
def busy(project: Project, ada: User) -> Project:
    team.make_busy_day(project, ada)
    team_queue.make_schedules(project, ada)
    team_queue.make_spending(project)
    make_fleet(project, ada)
    return project


@pytest.mark.feature("P7.1")
@pytest.mark.parametrize("look", [*LOOKS, "laptop"])
def test_an_overview_is_fine_for_axe_and_fits_a_screen(look, visitors, address, busy, ada):
    page = visitors.open(address, **LOOKS.get(look, {"viewport": LAPTOP}))
    sign_in(page)
    camera = Camera(page, look)
    page.locator("#live-state[data-state=on]").wait_for()
    camera.take("overview")
    if look == "laptop":
        assert page.evaluate(STAYS_OUT) == 0
    others = [make_project(name) for name in ("evals", "world-models")]
    for other in others:
        Membership.objects.create(project=other, user=ada, role=Role.VIEWER)
        make_job(other, name="elsewhere", status=JobStatus.RUNNING, started_at=timezone.now())
    camera.at("/", "overview-all", "#live-state[data-state=on]")
    if look == "laptop":
        assert page.evaluate(STAYS_OUT) == 0
    page.get_by_label("Project: rl").click()
    camera.take("project-menu")
    assert camera.problems == []


def test_an_overview_shows_changes_by_itself_and_leads_on_by_keyboard(page: Page, busy: Project):
    # Signing in led here before all of it was stored.
    page.goto("/rl")
    page.locator("#live-state[data-state=on]").wait_for()
    failures = page.locator("#overview-failures")
    expect(failures).to_contain_text("CUDA out of memory")
    job = Job.objects.get(project=busy, name="sft-baseline", status=JobStatus.RUNNING)
    page.evaluate("window.isSamePage = true")
    move(job, JobStatus.FAILED, reason=StopReason.OOM)
    expect(failures).to_contain_text("Out of memory")
    expect(page.locator("#overview-running")).not_to_contain_text("sft-baseline")
    assert page.evaluate("window.isSamePage")
    page.get_by_role("link", name="grpo-math-70b").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/rl/jobs/*")
