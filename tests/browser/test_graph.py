"""The pictures of jobs: the graph of dependencies and the grid of an array, in every look."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from jobs.lifecycle import move
from jobs.models import Job, JobArray, Project, User
from jobs.statuses import JobStatus, StopReason
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_job

LIVE = "#live-state[data-state=on]"


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, ada) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


def after(job: Job, *others: Job) -> Job:
    """Let a job depend on others."""
    for other in others:
        is_over = JobStatus(other.status).is_final
        job.dependencies.create(
            needs=other,
            needs_number=other.pk,
            needs_name=other.name,
            ended_as=other.status if is_over else "",
        )
    return job


def make_pipeline(project: Project, ada: User) -> dict[str, Job]:
    """Create a pipeline of jobs in every kind of state, with a job that cannot start any more."""
    jobs: dict[str, Job] = {}

    def add(name: str, status: str, *needs: str) -> None:
        job = make_job(project, name=name, status=JobStatus(status), submitted_by=ada)
        jobs[name] = after(job, *(jobs[each] for each in needs))

    add("download-corpus", "SUCCEEDED")
    add("tokenize", "SUCCEEDED", "download-corpus")
    add("deduplicate-with-a-long-name-of-its-own", "SUCCEEDED", "download-corpus")
    add("pretrain", "RUNNING", "tokenize", "deduplicate-with-a-long-name-of-its-own")
    add("reward-model", "FAILED", "tokenize")
    add("ppo", "QUEUED", "pretrain", "reward-model")
    add("eval-math", "QUEUED", "pretrain")
    add("eval-code", "QUEUED", "pretrain")
    add("report", "QUEUED", "ppo", "eval-math", "eval-code")
    return jobs


def make_array(project: Project, ada: User, size: int) -> JobArray:
    """Create an array with jobs in every status."""
    rates = [f"{place}e-4" for place in range(1, 11)]
    array = JobArray.objects.create(
        project=project,
        name="lr-sweep",
        size=size,
        values=[["seed", [str(each) for each in range(size // 10)]], ["lr", rates]],
        submitted_by=ada,
    )
    pattern = [JobStatus.SUCCEEDED] * 5 + [JobStatus.FAILED, JobStatus.RUNNING, JobStatus.QUEUED]
    pattern += [JobStatus.CANCELLED, JobStatus.SETTING_UP, JobStatus.RECOVERING]
    first = make_job(project, submitted_by=ada, array=array, array_index=0)
    jobs = []
    for index in range(1, size):
        job = Job.objects.get(pk=first.pk) if not jobs else Job(**_columns(jobs[0]))
        status = pattern[index * 7 % 11]
        job.pk, job.array_index, job.status = None, index, status
        job.name, job.failure_count = f"lr-sweep-{index}", int(index % 17 == 0)
        job.ended_at = first.created_at if status.is_final else None
        jobs.append(job)
    Job.objects.bulk_create(jobs)
    return array


def _columns(job: Job) -> dict[str, object]:
    return {field.attname: getattr(job, field.attname) for field in Job._meta.concrete_fields}


@pytest.mark.feature("S2.6")
def test_the_graph_and_the_grid_are_fine_in_every_look(camera, project, ada):
    jobs = make_pipeline(project, ada)
    camera.at(f"/rl/jobs/{jobs['ppo'].pk}/graph", "graph", "svg.graph")
    array = make_array(project, ada, 300)
    camera.at(f"/rl/arrays/{array.pk}", "array-grid", LIVE)
    camera.at(f"/rl/arrays/{array.pk}?status=FAILED", "array-grid-failed", LIVE)
    last = after(make_job(project, name="collect", submitted_by=ada), *array.jobs.all())
    for place in range(45):
        done = make_job(project, name=f"s{place}", status=JobStatus.SUCCEEDED, submitted_by=ada)
        last = after(make_job(project, name=f"n{place}", submitted_by=ada), last, done)
    camera.at(f"/rl/jobs/{last.pk}/graph", "graph-folded", "svg.graph")
    assert camera.problems == []


@pytest.mark.feature("S2.6")
def test_arrow_keys_walk_through_the_graph_and_a_job_that_ends_changes_it(page, project, ada):
    jobs = make_pipeline(project, ada)
    page.goto(f"/rl/jobs/{jobs['pretrain'].pk}")
    page.get_by_role("tab", name="Graph").click()
    own = page.locator("svg.graph a[aria-current]")
    expect(own).to_have_attribute("tabindex", "0")
    assert page.locator('svg.graph a[tabindex="0"]').count() == 1
    own.focus()
    page.keyboard.press("ArrowRight")
    chosen = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert chosen.startswith("eval-")
    move(jobs["pretrain"], JobStatus.STOPPING, reason=StopReason.CANCELLED_BY_USER, message="Stop.")
    label = f"pretrain #{jobs['pretrain'].pk}: Stopping"
    expect(own).to_have_attribute("aria-label", label + ", after " + _after(jobs))
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == chosen
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/*")
    assert page.get_by_role("heading", level=1).inner_text().startswith(chosen.split(" ")[0])


def test_a_node_of_folded_jobs_leads_to_the_graph_with_each_job(page, project, ada):
    last = make_job(project, name="report", submitted_by=ada)
    for place in range(42):
        done = make_job(project, name=f"s{place}", status=JobStatus.SUCCEEDED, submitted_by=ada)
        after(last, done)
    page.goto(f"/rl/jobs/{last.pk}/graph")
    page.locator("svg.graph a", has_text="42 jobs").click()
    expect(page.locator("svg.graph a")).to_have_count(43)
    page.wait_for_url("**/graph?whole=1")


def _after(jobs: dict[str, Job]) -> str:
    names = ("tokenize", "deduplicate-with-a-long-name-of-its-own")
    return ", ".join(f"{name} #{jobs[name].pk}" for name in names)


@pytest.mark.feature("S2.6")
def test_of_a_large_grid_only_the_cell_that_changed_is_drawn_again(page, project, ada):
    array = make_array(project, ada, 2000)
    page.goto(f"/rl/arrays/{array.pk}")
    page.locator(LIVE).wait_for()
    cells = page.locator("#array-grid .cell")
    assert cells.count() == 2000
    page.evaluate(
        """() => {
            window.drawn = 0;
            const seen = new MutationObserver((all) => {
                const cells = new Set(all.filter((each) => each.attributeName === "class")
                    .map((each) => each.target));
                window.drawn += cells.size;
            });
            seen.observe(document.getElementById("array-grid"), {subtree: true, attributes: true});
        }"""
    )
    job = array.jobs.get(array_index=0)
    expect(cells.first).to_have_attribute("aria-label", "0: Queued")
    move(job, JobStatus.CANCELLED, reason=StopReason.CANCELLED_BY_USER, message="Cancelled.")
    expect(cells.first).to_have_attribute("aria-label", "0: Cancelled")
    assert page.evaluate("window.drawn") == 1
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/rl/jobs/{array.jobs.get(array_index=1).pk}")
