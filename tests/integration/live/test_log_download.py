"""The log as plain text, over a real server."""

from __future__ import annotations

import gzip
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from jobs.logs import sealing
from jobs.models import Attempt, LogChunk
from jobs.reconcilers import retention
from tests.factories import make_attempt, make_job
from tests.frame_bytes import frame, lines


@pytest.fixture
def download(client, job):
    """GET the text of the job's log."""
    path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/download"
    return lambda **query: client.get(path, params=query)


@pytest.mark.feature("P3.2")
def test_a_log_is_downloaded_whole_whatever_is_sealed(
    download, post, attempt, job, monkeypatch
) -> None:
    monkeypatch.setattr("jobs.api.logs.log_views._DOWNLOAD_LINES", 100)
    monkeypatch.setattr(sealing, "CHUNK_BYTES", 1)
    post(*lines(1, 250))
    sealing.seal(attempt.pk)
    post(*lines(251, 333))
    answer = download()
    assert answer.text == "".join(f"[0] r0 s{seq}\n" for seq in range(1, 334))
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert f'filename="job-{job.pk}.log"' in answer.headers["Content-Disposition"]


def test_ranks_are_named_unless_one_was_requested_and_times_when_wanted(download, post) -> None:
    post(frame(1), frame(1, rank=1), frame(2))
    assert download().text == "[0] r0 s1\n[1] r1 s1\n[0] r0 s2\n"
    assert download(rank=1).text == "r1 s1\n"
    assert download(rank=1, times="true").text == "2023-11-14T22:13:20.010Z r1 s1\n"


def test_the_pieces_of_a_long_line_are_one_line_again(download, post) -> None:
    post(
        frame(1, text="a", more=True),
        frame(2, text="b", more=True),
        frame(1, rank=1),
        frame(3, text="c"),
        frame(4, text="cut", more=True),
    )
    assert download(rank=0).text == "abc\ncut\n"
    assert download().text == "[0] ab\n[1] r1 s1\n[0] c\n[0] cut\n"


def test_the_log_of_an_attempt_that_was_removed_is_reported_before_the_rest(
    download, post, attempt, job, settings
) -> None:
    post(*lines(1, 2))
    ended = timezone.now() - timedelta(days=31)
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=ended)
    make_attempt(job)
    settings.MPORTAL_LOG_DAYS = 30
    retention.step()
    said = f"The log of attempt 1 was removed on {timezone.now():%Y-%m-%d} after 31 days."
    assert download().text == f"[portal] {said}\n"
    assert download(attempt=2).text == ""


def test_a_log_whose_store_is_not_named_is_refused_rather_than_cut_short(
    download, post, attempt
) -> None:
    post(*lines(1, 2))
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=timezone.now())
    sealing.seal(attempt.pk)
    LogChunk.objects.update(store="s3")
    answer = download()
    assert (answer.status_code, answer.json()["code"]) == (503, "log_store_away")


def test_an_empty_log_is_an_empty_text(download, attempt) -> None:
    answer = download()
    assert (answer.status_code, answer.text) == (200, "")


def test_strangers_and_anonymous_callers_get_no_text(client, web, job) -> None:
    path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/download"
    assert httpx.get(web + path).status_code == 401
    other = make_job()
    path = f"/api/v1/projects/{other.project.slug}/jobs/{other.pk}/logs/download"
    assert client.get(path).status_code == 404


@pytest.mark.feature("P3.2")
def test_a_log_comes_as_a_gzip_file_with_the_same_text(download, post, monkeypatch) -> None:
    monkeypatch.setattr("jobs.api.logs.log_views._DOWNLOAD_LINES", 100)
    post(*lines(1, 333))
    answer = download(format="gzip", times=True)
    assert answer.headers["Content-Type"] == "application/gzip"
    assert "Content-Encoding" not in answer.headers
    assert '.log.gz"' in answer.headers["Content-Disposition"]
    assert gzip.decompress(answer.content).decode() == download(times=True).text


@pytest.mark.parametrize(
    ("taken", "packed"),
    [("gzip", True), ("br;q=1, GZIP;q=0.5", True), ("identity", False), ("gzip;q=0", False)],
)
def test_a_log_is_compressed_on_its_way_to_who_takes_that(client, job, post, taken, packed) -> None:
    post(*lines(1, 50), frame(51, text="\x1b[31mraw\r kept"))
    path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/download"
    answer = client.get(path, headers={"Accept-Encoding": taken})
    assert (answer.headers.get("Content-Encoding") == "gzip") is packed
    assert "Accept-Encoding" in answer.headers["Vary"]
    assert '.log"' in answer.headers["Content-Disposition"]
    assert answer.text.endswith("[0] r0 s50\n[0] \x1b[31mraw\r kept\n")


def test_a_format_that_there_is_not_is_refused(download) -> None:
    assert download(format="zip").status_code == 400
