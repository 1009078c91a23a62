"""Finding the processes that a killed portal left, and no others."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from monarch_portal.embedded import process_table
from monarch_portal.embedded.process_table import ProcessRecord


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def test_what_was_written_down_is_found_again(tmp_path, sleeper):
    table = tmp_path / "processes.json"
    process_table.write_table(table, {"web": sleeper.pid})
    assert [record.name for record in process_table.living(table)] == ["web"]


def test_a_number_that_passed_to_a_stranger_is_not_ours(sleeper):
    record = ProcessRecord("web", sleeper.pid, started=1)
    assert not record.lives


def test_a_number_of_another_boot_is_not_ours(tmp_path, sleeper):
    table = tmp_path / "processes.json"
    process_table.write_table(table, {"web": sleeper.pid})
    [record] = json.loads(table.read_text())
    table.write_text(json.dumps([{**record, "boot": "another"}]))
    assert process_table.living(table) == []
    assert process_table.end_orphans(table) == []
    assert sleeper.poll() is None


def test_only_its_user_may_read_the_table(tmp_path):
    table = tmp_path / "processes.json"
    process_table.write_table(table, {"web": os.getpid()})
    assert stat.S_IMODE(table.stat().st_mode) == 0o600


def test_a_zombie_does_not_live(sleeper):
    record = ProcessRecord.of("web", sleeper.pid)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not record.lives


def test_orphans_are_ended_and_strangers_left_alone(tmp_path, sleeper):
    table = tmp_path / "processes.json"
    process_table.write_table(table, {"web": sleeper.pid})
    ended = process_table.end_orphans(table)
    assert [record.pid for record in ended] == [sleeper.pid]
    assert sleeper.wait(5) == -15
    assert not table.exists()


@pytest.mark.parametrize("text", ["", "{", '[{"name": "web"}]'])
def test_a_table_that_can_not_be_read_holds_nothing(tmp_path, text):
    table = tmp_path / "processes.json"
    table.write_text(text)
    assert process_table.living(table) == []
