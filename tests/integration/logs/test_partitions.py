"""The days of the tail: made ahead, dropped when empty, never in the way of a line."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
import time_machine
from django.db import connection

from jobs.logs import partitions
from jobs.logs.reading import read_lines
from jobs.models import LogBlock
from tests.frame_bytes import frame

pytestmark = pytest.mark.django_db

NOW = datetime(2031, 5, 6, 12, tzinfo=timezone.utc)


def days() -> list[str]:
    return sorted(day.isoformat() for day in partitions._existing() if day.year == NOW.year)


def table_of(first_line: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tableoid::regclass::text FROM jobs_logblock WHERE first_line = %s",
            [first_line],
        )
        return str(cursor.fetchone()[0])


def test_coming_days_get_a_partition_and_again_is_nothing() -> None:
    with time_machine.travel(NOW, tick=False):
        partitions.ensure()
        made = days()
        partitions.ensure()
    assert made == ["2031-05-06", "2031-05-07", "2031-05-08", "2031-05-09"]
    assert days() == made


def test_lines_go_to_their_day_and_without_one_to_the_default(attempt, post) -> None:
    with time_machine.travel(NOW, tick=False):
        post(frame(1))
        assert table_of(1) == "jobs_logblock_default"
        # Today cannot be split off any more; the other days can.
        partitions.ensure()
        assert days() == ["2031-05-07", "2031-05-08", "2031-05-09"]
    with time_machine.travel(NOW + timedelta(days=1), tick=False):
        post(frame(2))
        assert table_of(2) == "jobs_logblock_2031_05_07"
    assert [line.text for line in read_lines(attempt.pk)] == ["r0 s1", "r0 s2"]


def test_old_days_are_dropped_when_they_are_empty_and_only_then(attempt, post) -> None:
    with time_machine.travel(NOW, tick=False):
        partitions.ensure()
        post(frame(1))
    with time_machine.travel(NOW + timedelta(days=7), tick=False):
        partitions.ensure()
        assert "2031-05-06" in days()
        assert "2031-05-07" not in days()
        LogBlock.objects.all().delete()
        partitions.ensure()
        assert "2031-05-06" not in days()


def test_a_table_in_use_is_left_to_the_next_time(monkeypatch) -> None:
    def refuse(cursor, day) -> None:
        cursor.execute("SELECT 1 / 0")

    with time_machine.travel(NOW, tick=False):
        with monkeypatch.context() as patch:
            patch.setattr(partitions, "_make", refuse)
            partitions.ensure()
        assert days() == []
        partitions.ensure()
        assert len(days()) == partitions.DAYS_AHEAD + 1
