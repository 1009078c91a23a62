"""The charts of compared runs: window, mark, hidden runs, style, table and CSV file."""

from __future__ import annotations

import csv
import re

from jobs.ground import clock
from jobs.models import GpuUse, Job
from jobs.statuses import JobStatus
from tests.integration.api.jobs.test_runs import add_series, make_run
from tests.integration.web.jobs.test_runs import address_of


def two_runs(project, **fields) -> list[Job]:
    """Create runs whose loss is 10 times the step, the second one of twice the steps."""
    runs = [make_run(project, took_s=60, **fields), make_run(project, took_s=60, **fields)]
    for run, steps in zip(runs, (range(1, 21), range(1, 41)), strict=True):
        add_series(run.attempts.get(), "loss", steps)
    return runs


def summaries(viewer, address: str) -> list[str]:
    html = viewer.get(address).content.decode()
    return re.findall(r'role="img"\s+aria-label="([^"]+)"', html)


def test_a_window_of_steps_shows_its_points_of_each_run(viewer, project):
    first, second = two_runs(project)
    address = address_of(first, second, by="&from=10&to=30")
    (summary,) = summaries(viewer, address)
    assert summary == (
        f"loss of 2 runs: lowest 100, highest 300; last: #{first.pk} 200, #{second.pk} 300."
    )
    html = viewer.get(address).content.decode()
    assert 'data-unit="1" data-low="10.0" data-high="30.0"' in html
    for label in ("Zoom in", "Zoom out", "Earlier", "Later", "All"):
        assert f">{label}</a>" in html
    beyond = address_of(first, second, by="&from=1000&to=2000")
    assert "No metrics in this window. All" in viewer.text(beyond)


def test_a_window_of_time_begins_at_the_start_of_each_run(viewer, project):
    runs = [make_run(project, took_s=600), make_run(project, took_s=60)]
    for run in runs:
        series = add_series(run.attempts.get(), "loss", range(1, 41))
        start = run.started_at.timestamp()
        series.recent = [[start + step, step, 1, 10.0 * step] for step in range(1, 41)]
        series.save()
    use = [[run.started_at.timestamp() + s, 1, s, 1.0] for run in runs[:1] for s in (5.0, 95.0)]
    GpuUse.objects.create(
        attempt=runs[0].attempts.get(), job=runs[0], at=clock.now(), busy_at=clock.now(), points=use
    )
    shown = summaries(viewer, address_of(*runs, by="&by=time&from=9500&to=20500"))
    assert shown == [
        f"loss of 2 runs: lowest 100, highest 200; last: #{runs[0].pk} 200, #{runs[1].pk} 200."
    ]
    whole = summaries(viewer, address_of(*runs, by="&by=time"))
    assert whole[0].startswith(f"GPU use of #{runs[0].pk}: lowest 5 %, highest 95 %")


def test_a_hidden_run_leaves_the_charts_and_the_others_keep_their_colors(viewer, project):
    first, second = two_runs(project)
    address = address_of(first, second, by=f"&hide={first.pk}")
    assert summaries(viewer, address)[0].startswith(f"loss of #{second.pk}: lowest 10")
    html = viewer.get(address).content.decode()
    assert f'aria-label="Show job {first.pk}"' in html
    assert f'aria-label="Hide job {second.pk}"' in html
    assert set(re.findall(r'<polyline class="(c\d)', html)) == {"c1"}
    none = address_of(first, second, by=f"&hide={first.pk},{second.pk}")
    assert "The charts of all runs are hidden." in viewer.text(none)


def test_a_marked_step_shows_the_values_of_all_runs_there(viewer, project):
    text = viewer.text(address_of(*two_runs(project), by="&at=15"))
    assert "Values at step 15" in text
    assert text.count(" 150") == 2


def test_links_keep_the_window_the_style_and_the_hidden_runs(viewer, project):
    runs = [*two_runs(project), make_run(project)]
    view = f"&hide={runs[0].pk}&smooth=60&scale=log&from=1&to=9&at=5"
    html = viewer.get(address_of(*runs, by=view)).content.decode().replace("&amp;", "&")
    removed = re.search(rf'href="\?([^"]+)"\s+aria-label="Remove job {runs[2].pk}"', html)
    assert removed is not None
    for part in view.strip("&").split("&"):
        assert part in removed[1]
    assert 'class="c1 faint"' in html
    added = viewer.get(f"{address_of(*runs[:2], by=view)}&add={runs[2].pk}")["Location"]
    assert "smooth=60" in added and added.startswith(address_of(*runs))
    assert viewer.get(address_of(*runs, by="&smooth=x")).status_code == 404


def test_the_table_of_metrics_has_last_lowest_and_highest_of_each_run(viewer, project):
    first, second = two_runs(project)
    last = second.attempts.get().program_series.get()
    last.value, last.lowest, last.highest = 7.0, 3.0, 99.0
    last.save()
    text = viewer.text(address_of(first, second))
    assert "loss last 200 lowest 10, highest 200 last 7 lowest 3, highest 99" in text


def test_the_part_that_changes_is_final_once_all_runs_have_ended(viewer, project):
    first, second = two_runs(project)
    path = f"/rl/compare/live?jobs={first.pk},{second.pk}"
    html = viewer.get(path).content.decode()
    assert html.startswith('<div id="compared" class="stack" data-final>')
    assert html.strip() in viewer.get(address_of(first, second)).content.decode()
    Job.objects.filter(pk=first.pk).update(status=JobStatus.RUNNING, ended_at=None)
    assert "data-final" not in viewer.get(path).content.decode()


def test_the_csv_file_has_each_point_of_each_metric(viewer, project):
    first, second = two_runs(project)
    answer = viewer.get(f"/rl/compare/metrics.csv?jobs={first.pk},{second.pk}")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    name = f"metrics-{first.pk}-{second.pk}.csv"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    rows = list(csv.DictReader(answer.content.decode().splitlines()))
    assert [row["job"] for row in rows] == [str(first.pk)] * 20 + [str(second.pk)] * 40
    # `add_series` counts from the submission, which is 30 s before the start.
    last = {name: rows[-1][name] for name in ("metric", "step", "seconds", "value")}
    assert last == {"metric": "loss", "step": "40", "seconds": "10.0", "value": "400.0"}
    assert rows[-1]["time"].endswith("+00:00")
    assert viewer.get("/rl/compare/metrics.csv?jobs=999999").status_code == 404
