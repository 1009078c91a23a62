"""kill -9 of every portal process at once loses no job, no acknowledged line, no exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.faults.witness import BEGIN, Witness
from tests.waiting import eventually

JOBS = "/api/v1/projects/default/jobs"
# The first failure ends the other ranks: rank 0 waits until the witness has seen the other one end.
COUNTING = """
for i in $(seq 400); do echo "line $i"; sleep 0.02; done
[ $SKYPILOT_NODE_RANK = 0 ] || exit 0
until [ "$word" = peer-ended ]; do read -r word <&3 || break; done
exit 3
"""


@pytest.fixture
def witness() -> Iterator[Witness]:
    made = Witness()
    yield made
    made.close()


def test_a_job_outlives_the_portal_and_no_line_is_lost_or_doubled(own_portal, tmp_path, witness):
    own_portal.start()
    file = tmp_path / "job.json"
    run = BEGIN.format(port=witness.port) + COUNTING
    file.write_text(json.dumps({"name": "counting", "num_nodes": 2, "run": run}))
    said = own_portal.mportal("submit", "-f", str(file), "-d", "-q")
    job_id = int(re.findall(r"\d+", said.stdout)[0])

    def job() -> dict:
        with own_portal.client() as client:
            return client.get(f"{JOBS}/{job_id}").json()

    def lines() -> list[dict]:
        with own_portal.client() as client:
            answer = client.get(f"{JOBS}/{job_id}/logs", params={"limit": 1000, "stream": "stdout"})
            return answer.json()["results"]

    assert eventually(lambda: len(lines()) > 40)
    before = lines()
    own_portal.kill()
    own_portal.start()
    own_portal.wait_until_ready()

    assert lines()[: len(before)] == before
    assert eventually(lambda: job()["is_final"], timeout_s=60)
    ended = job()
    assert (ended["status"], ended["exit_code"], ended["attempt"]) == ("FAILED", 3, 1)
    for rank in (0, 1):
        texts = [line["text"] for line in lines() if line["rank"] == rank]
        assert texts == [f"line {i}" for i in range(1, 401)]


def test_a_job_that_ends_while_the_portal_is_away_is_taken_up_with_its_exit_code(
    own_portal, tmp_path
):
    own_portal.start()
    file = tmp_path / "job.yaml"
    file.write_text("name: away\nrun: echo started; sleep 2; echo done; exit 5\n")
    held = own_portal.mportal("run", "-d", "-q", "--hold", "true").stdout.strip()
    own_portal.mportal("submit", "-f", str(file), "-d")

    def job() -> dict:
        with own_portal.client() as client:
            return client.get(JOBS).json()["results"][0]

    assert eventually(lambda: job()["status"] == "RUNNING")
    own_portal.stop()
    own_portal.start()
    assert eventually(lambda: job()["is_final"], timeout_s=30)
    assert (job()["status"], job()["exit_code"], job()["attempt"]) == ("FAILED", 5, 1)

    # What was held when it went away is held when it is back, until it is released.
    waiting = own_portal.mportal("ps", "--search", held)
    assert "QUEUED" in waiting.stdout and "Held by admin." in waiting.stdout
    released = own_portal.mportal("release", held)
    assert released.returncode == 0, released.stderr
    assert own_portal.mportal("wait", held, "--timeout", "60").returncode == 0
