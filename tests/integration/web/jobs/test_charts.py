"""/{project}/jobs/{id}/charts: all ranks in one chart, and from a moment to the log."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job
from tests.frame_bytes import T0, body, frame
from tests.integration.web.conftest import SOURCE
from tests.sample_frames import sample, tell_of_hosts

LARGEST_PART = 300_000


@pytest.fixture
def attempt(project, member) -> Attempt:
    job = make_job(
        project,
        status=JobStatus.RUNNING,
        submitted_by=member.user,
        num_nodes=1000,
        spec_source=SOURCE,
    )
    return make_attempt(job)


def tell(attempt: Attempt, *frames) -> None:
    ingest_frames(attempt.pk, attempt_token(attempt.job_id, attempt.number), body(*frames))


def reported(seq: int, rank: int = 0) -> dict:
    """Return a report of rank `rank`, `seq` seconds after T0."""
    return {**frame(seq, rank=rank, text=f"step={seq} loss={10 / seq}"), "t": T0 + seq}


def live(viewer, of: Attempt, **query) -> str:
    answer = viewer.get(f"/rl/jobs/{of.job_id}/charts/live", query)
    assert answer.status_code == 200
    assert len(answer.content) < LARGEST_PART
    text: str = answer.content.decode()
    return text


def titles(html: str) -> list[str]:
    return re.findall(r"<figcaption>\s*<b>([^<]+)", html)


def test_metrics_of_the_program_and_of_hosts_share_the_axis_of_time(viewer, attempt) -> None:
    tell(attempt, *(reported(seq, rank) for rank in range(2) for seq in range(1, 21)))
    tell(attempt, *(sample(10 * number, cpu=5.0) for number in range(3)))
    html = live(viewer, attempt)
    assert titles(html) == ["loss", "Processor", "Memory", "Network in", "Network out"]
    assert 'aria-label="loss of 2 nodes: lowest 0.5, highest 10' in html
    assert set(re.findall(r'data-(?:low|high)="([\d.]+)"', html)) == {str(T0 + 1), str(T0 + 20)}
    whole = viewer.get(f"/rl/jobs/{attempt.job_id}/charts").content.decode()
    assert html.strip() in whole


def test_a_window_holds_its_points_by_time_and_by_step(viewer, attempt) -> None:
    tell(attempt, *(reported(seq) for seq in range(1, 21)))
    begin, end = int((T0 + 5) * 1000), int((T0 + 10) * 1000)
    html = live(viewer, attempt, **{"from": begin, "to": end})
    assert "lowest 1, highest 2" in html
    html = live(viewer, attempt, **{"by": "step", "from": 10, "to": 20})
    assert "lowest 0.5, highest 1" in html
    assert "No metrics in this window." in " ".join(
        live(viewer, attempt, **{"from": 1, "to": 2}).split()
    )


def test_a_thousand_hosts_stay_small_and_others_are_counted(viewer, attempt) -> None:
    tell_of_hosts(attempt, 1000, gpus=2, points=30)
    html = live(viewer, attempt)
    assert "GPU use of 32 nodes" in html
    assert "And 968 more nodes, not shown." in html


def test_a_moment_leads_to_the_line_of_the_rank_at_that_moment(viewer, attempt) -> None:
    tell(attempt, *(reported(seq) for seq in range(1, 201)), reported(150, 7) | {"seq": 1})
    path = f"/rl/jobs/{attempt.job_id}/log-at"

    def line(seconds: float, **query) -> str:
        at = int((T0 + seconds) * 1000)
        return viewer.get(path, {"at": at, **query})["Location"].partition("#")[2]

    assert line(-5) == "A1-L1"
    assert line(99.5) == "A1-L100"
    assert line(1000) == "A1-L201"
    assert line(100, rank=7) == "A1-L201"
    assert viewer.get(path, {"at": "x"}).status_code == 404


@pytest.mark.parametrize("name", ["from", "to", "at", "smooth"])
def test_the_part_of_the_address_that_is_no_whole_number_is_named(viewer, attempt, name) -> None:
    answer = viewer.get(f"/rl/jobs/{attempt.job_id}/charts/live", {name: "1.5"})
    assert answer.status_code == 404
    said = f"{name} must be a whole number of at most 16 digits, not 1.5."
    assert said in answer.content.decode()


def test_the_axis_of_the_night_in_which_clocks_are_set_back_has_three_different_times(
    viewer, attempt
) -> None:
    begin = datetime(2026, 10, 25, tzinfo=timezone.utc).timestamp()
    reports = [reported(seq) | {"t": begin + seconds} for seq, seconds in enumerate((0, 7200), 1)]
    tell(attempt, *reports)
    viewer.user.time_zone, viewer.user.hour_format = "Europe/Berlin", "24"
    viewer.user.save()
    times = re.findall(r"data-clock>[^<]*, ([^<]+)</time>", live(viewer, attempt))
    assert times[:3] == ["02:00:00 UTC+2", "02:00:00 UTC+1", "03:00:00"]


def test_before_any_metric_the_page_describes_how_to_report_one(viewer, attempt) -> None:
    assert "step=3 loss=0.25" in live(viewer, attempt)


def test_values_of_any_size_break_no_chart(viewer, attempt) -> None:
    texts = [f"step={seq} loss={(-1) ** seq}.7e308 acc=0.5" for seq in range(1, 40)]
    tell(attempt, *(frame(seq, text=text) for seq, text in enumerate(texts, 1)))
    assert titles(live(viewer, attempt)) == ["acc"]
    # As an earlier version stored it.
    stored = [[T0, 1, 1, 1.7e308], [T0, 2, 1, -1.7e308], [T0, 3, 1, 0.5]]
    attempt.program_series.filter(name="loss").update(recent=stored, old=[])
    assert "loss of node 0: lowest 0.5, highest 0.5" in live(viewer, attempt)


def test_the_links_of_a_window_at_the_limit_lead_to_a_window(viewer, attempt) -> None:
    tell(attempt, reported(1))
    html = live(viewer, attempt, by="step", **{"from": 1, "to": 9_999_999_999_999_999})
    ends = re.findall(r"(?:from|to)=(\d+)", html)
    assert ends
    assert max(len(end) for end in ends) == 16
