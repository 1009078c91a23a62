"""The picture of the timeline: labels that are whole, also where there is little space."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from jobs.web.queue.timeline_picture import lanes_of
from monarch_client.wire.timeline import Timeline, TimelineJob, TimelineLane

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HALF = timedelta(minutes=30)
# In percent of a picture of 900 pixels: no letter of its font is wider on average.
LETTER = 0.7


def ended(number: int, minutes_ago: float) -> TimelineJob:
    end = NOW - timedelta(minutes=minutes_ago)
    return TimelineJob(
        kind="ended",
        job_id=number,
        project="rl",
        name="sweep-of-learning-rates",
        owner="mia",
        status="SUCCEEDED",
        attempt=1,
        num_nodes=8,
        gpu_type="H100",
        gpu_count=64,
        begin=end - timedelta(minutes=1),
        begin_basis="began",
        end=end,
        end_basis="ended",
    )


def labels_of(jobs: list[TimelineJob]) -> list[tuple[float, str]]:
    """Return the width and the text of each label."""
    lane = TimelineLane(kind="pool", name="big", jobs=jobs, left_out=0)
    timeline = Timeline(now=NOW, begin=NOW - HALF, end=NOW + HALF, lanes=[lane], is_whole=True)
    bars = str(lanes_of(timeline)[0].bars)
    found = re.findall(r'width="([\d.]+)%" height="20"><text[^>]*>([^<]*)</text>', bars)
    return [(float(width), label) for width, label in found]


def test_labels_of_some_jobs_are_whole():
    labels = labels_of([ended(number, 2.0 * number) for number in reversed(range(12))])
    assert {label for _, label in labels} == {
        f"sweep-of-learning-rates #{number} · 8 x H100:8" for number in range(12)
    }
    assert all(len(label) * LETTER <= width for width, label in labels)


@pytest.mark.parametrize("size", [100, 400])
def test_of_many_jobs_a_label_is_shortened_to_a_part_that_says_something_or_left_out(size):
    labels = labels_of([ended(number, 29 * number / size) for number in reversed(range(size))])
    assert all(len(label) * LETTER <= width for width, label in labels)
    parts = re.compile(r"|#\d+|sweep-of-learning-rates #\d+( · 8 x H100:8)?")
    assert all(parts.fullmatch(label) for _, label in labels)
