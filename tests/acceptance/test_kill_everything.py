"""kill -9 of every portal process at once loses no job, no acknowledged line, no exit code."""

from __future__ import annotations

import re

from tests.waiting import eventually

JOBS = "/api/v1/projects/default/jobs"
COUNTING = """
name: counting
num_nodes: 2
run: |
  for i in $(seq 400); do echo "line $i"; sleep 0.02; done
  # The first failure ends the other ranks: give them the time to end by themselves.
  [ $SKYPILOT_NODE_RANK = 1 ] || { sleep 3; exit 3; }
"""


def test_a_job_outlives_the_portal_and_no_line_is_lost_or_doubled(own_portal, tmp_path):
    own_portal.start()
    file = tmp_path / "job.yaml"
    file.write_text(COUNTING)
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
    own_portal.mportal("submit", "-f", str(file), "-d")

    def job() -> dict:
        with own_portal.client() as client:
            return client.get(JOBS).json()["results"][0]

    assert eventually(lambda: job()["status"] == "RUNNING")
    own_portal.stop()
    own_portal.start()
    assert eventually(lambda: job()["is_final"], timeout_s=30)
    assert (job()["status"], job()["exit_code"], job()["attempt"]) == ("FAILED", 5, 1)
