"""The history of one name and the comparison of runs, and the links that lead to them."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Job, Membership
from jobs.readers import run_history
from jobs.statuses import JobStatus, Role
from tests.factories import make_project
from tests.integration.api.jobs.test_runs import add_series, make_run

HISTORY = "/rl/history?name=ppo"


def address_of(*jobs: Job, by: str = "") -> str:
    """Return the address of the comparison."""
    return f"/rl/compare?jobs={','.join(str(job.pk) for job in jobs)}{by}"


def test_the_history_shows_each_run_and_charts_of_duration_cost_and_a_metric(viewer, project):
    first = make_run(project, took_s=60)
    second = make_run(project, took_s=90, usd="2", status=JobStatus.FAILED, stop_reason="OOM")
    make_run(project, name="other")
    for job in (first, second):
        add_series(job.attempts.get(), "loss", range(1, 3))
        add_series(job.attempts.get(), "acc", range(1, 4))
    html = viewer.get(HISTORY).content.decode()
    assert re.findall(r'<tr id="job-(\d+)"', html) == [str(second.pk), str(first.pk)]
    for chart in (
        "Duration of the last run: lowest 60 s, highest 90 s",
        "Cost of the last run: lowest $1.50, highest $2.00",
        "acc of the last run: lowest 30, highest 30",
    ):
        assert f'aria-label="{chart}' in html
    assert "Out of memory" in viewer.text(HISTORY)
    assert (
        'aria-label="loss of the last run: '
        in viewer.get(f"{HISTORY}&metric=loss").content.decode()
    )
    assert "job-rows" in viewer.get("/rl/history/live?name=ppo").content.decode()


def test_the_job_page_says_which_run_it_is_and_leads_to_those_beside_it(
    viewer, project, monkeypatch
):
    only = make_run(project, name="other")
    assert "Compare with the run before" not in viewer.text(f"/rl/jobs/{only.pk}")
    first, second, third = (make_run(project) for _ in range(3))
    html = viewer.get(f"/rl/jobs/{second.pk}").content.decode()
    assert re.search(r'href="/rl/history\?name=ppo"[^>]*>\s*2 of 3', html)
    assert f'title="Previous run: #{first.pk}"' in html
    assert f'title="Next run: #{third.pk}"' in html
    assert f'href="{address_of(first, second)}"' in html
    monkeypatch.setattr(run_history, "COUNT_LIMIT", 1)
    assert re.search(r">\s*one of many", viewer.get(f"/rl/jobs/{third.pk}").content.decode())


def test_the_table_leads_to_the_history_and_compares_what_a_viewer_selects(viewer, project):
    first, second = make_run(project), make_run(project)
    html = viewer.get("/rl/jobs").content.decode()
    assert 'href="/rl/history?name=ppo"' in html
    assert 'formaction="/rl/compare"' in html and 'value="cancel"' not in html
    selected = viewer.post("/rl/compare", {"job": [second.pk, first.pk]})
    assert selected["Location"] == address_of(second, first)
    many = viewer.post("/rl/compare", {"job": list(range(1, 9))}, follow=True)
    assert many.redirect_chain == [("/rl/compare?jobs=1,2,3,4,5,6", 302)]


def test_a_comparison_shows_facts_differences_and_metrics_in_one_chart(viewer, project):
    first = make_run(project, lr="0.1")
    second = make_run(project, lr="0.2", status=JobStatus.FAILED, stop_reason="OOM", exit_code=137)
    for job in (first, second):
        add_series(job.attempts.get(), "loss", range(1, 4))
    html = viewer.get(address_of(first, second)).content.decode()
    summary = f"loss of 2 runs: lowest 10, highest 30; last: #{first.pk} 30, #{second.pk} 30."
    assert f'aria-label="{summary}"' in html
    assert '<span class="removed">-  LR: 0.1</span>' in html
    page = viewer.text(address_of(first, second))
    for words in ("envs.LR 0.1 0.2", "Exit code – 137", "Waited 30 s 30 s", "step 1"):
        assert words in page
    over_time = viewer.text(address_of(first, second, by="&by=time"))
    assert "Since the start of each run." in over_time and "step 1" not in over_time
    third = make_run(project)
    added = viewer.get(f"{address_of(first, second)}&add=%23{third.pk}")
    assert added["Location"] == address_of(first, second, third)


def test_jobs_of_other_projects_are_compared_by_members_of_both(viewer, project):
    other = make_project("vision")
    mine, theirs = make_run(project), make_run(other)
    assert viewer.get(address_of(mine, theirs)).status_code == 404
    Membership.objects.create(project=other, user=viewer.user, role=Role.VIEWER)
    assert "Project rl vision" in viewer.text(address_of(mine, theirs))


def test_pages_without_enough_jobs_say_what_to_do(viewer, project):
    job = make_run(project)
    assert "Select two to six jobs" in viewer.text(address_of(job))
    assert "Select two to six jobs" in viewer.text("/rl/compare")
    assert "No job of this project has the name gone" in viewer.text("/rl/history?name=gone")
    assert viewer.get("/rl/history")["Location"] == "/rl/jobs"


@pytest.mark.parametrize("path", [HISTORY, "/rl/compare?jobs={jobs}", "/rl/jobs/{job}"])
def test_pages_take_as_many_queries_for_many_runs_as_for_two(viewer, project, path):
    def queries() -> int:
        numbers = list(Job.objects.values_list("pk", flat=True)[:6])
        address = path.format(jobs=",".join(map(str, numbers)), job=numbers[1])
        viewer.get(address)
        with CaptureQueriesContext(connection) as captured:
            assert viewer.get(address).status_code == 200
        return len(captured)

    def add(count: int) -> None:
        for _ in range(count):
            add_series(make_run(project).attempts.get(), "loss", range(1, 3))

    add(3)
    few = queries()
    add(4)
    assert queries() == few


def test_a_metric_that_no_run_reported_is_named_with_those_that_exist(viewer, project):
    job = make_run(project)
    add_series(job.attempts.get(), "loss", range(1, 9))
    text = viewer.text(f"{HISTORY}&metric=los")
    assert "reported no metric los. They reported loss" in text
    assert "reported no metric" not in viewer.text(f"{HISTORY}&metric=loss")
