"""The follower process: maintains the tail's daily partitions, and stops on request."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from jobs.follower.loop import FollowerLoop
from jobs.logs import partitions
from tests.waiting import eventually
from tests.web_process import CHECKOUT, environment


@pytest.mark.django_db(transaction=True)
def test_the_follower_makes_the_coming_days_and_ends_on_sigterm(tmp_path: Path) -> None:
    with connection.cursor() as cursor:
        for day in partitions._existing():
            cursor.execute(f"DROP TABLE {partitions._table(day)}")
    process = subprocess.Popen(
        [sys.executable, "manage.py", "follower"], cwd=CHECKOUT, env=environment(tmp_path)
    )
    try:
        assert eventually(lambda: len(partitions._existing()) > partitions.DAYS_AHEAD)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.django_db
def test_a_look_does_its_daily_work_once_a_day(monkeypatch) -> None:
    calls: list[None] = []
    monkeypatch.setattr(partitions, "ensure", lambda: calls.append(None))
    monkeypatch.setattr("jobs.follower.loop.connections.close_all", lambda: None)
    loop = FollowerLoop()
    loop.look()
    loop.look()
    assert len(calls) == 1
