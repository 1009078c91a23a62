"""A real job is preempted: its driver saves its work on the notice, and resumes from it."""

from __future__ import annotations

import json
import re

import pytest

from tests.waiting import eventually

JOBS = "/api/v1/projects/default/jobs"
SET_UP = """
from jobs.models import Pool, Queue
pool = Pool.objects.create(
    name="two", backend_name="local", caps={"nodes": 2}, preempts_by_rank=True
)
Queue.objects.filter(name="default").update(pool=pool)
Queue.objects.create(name="urgent", rank=10, pool=pool)
"""
TRAIN = """
if [ "$MPORTAL_ATTEMPT" -gt 1 ]; then echo "went on from step 41"; exit 0; fi
trap 'echo "checkpoint of step 41"; exit 0' TERM
echo training
while :; do sleep 0.1; done
"""


@pytest.mark.feature("P5.4")
def test_a_job_saves_its_work_when_it_is_preempted_and_goes_on_after_the_other(
    own_portal, tmp_path
):
    own_portal.start()
    made = own_portal.manage("shell", "-c", SET_UP)
    assert made.returncode == 0, made.stderr

    def submit(name: str, run: str, **portal: object) -> int:
        file = tmp_path / f"{name}.json"
        spec = {"name": name, "num_nodes": 2, "run": run, "portal": portal}
        file.write_text(json.dumps(spec))
        said = own_portal.mportal("submit", "-f", str(file), "-d", "-q")
        assert said.returncode == 0, said.stdout + said.stderr
        return int(re.findall(r"\d+", said.stdout)[0])

    def get(path: str, **params: object) -> dict:
        with own_portal.client() as client:
            answer: dict = client.get(f"{JOBS}/{path}", params=params).json()
            return answer

    def texts(job: int, attempt: int) -> list[str]:
        rows = get(f"{job}/logs", limit=1000, stream="stdout")["results"]
        return [row["text"] for row in rows if (row["attempt"], row["rank"]) == (attempt, 0)]

    train = submit("train", TRAIN, preemptible=True)
    assert eventually(lambda: texts(train, 1) == ["training"], timeout_s=60), own_portal.logs()
    urgent = submit("urgent", "echo urgent", queue="urgent")
    for job in (urgent, train):
        assert eventually(lambda job=job: get(str(job))["is_final"], timeout_s=90), get(str(job))
        assert get(str(job))["status"] == "SUCCEEDED"
    assert texts(train, 1) == ["training", "checkpoint of step 41"]
    assert texts(train, 2) == ["went on from step 41"]
    between = get(f"{urgent}/attempts")["results"][0]
    second, first = get(f"{train}/attempts")["results"]
    assert first["ended_at"] <= between["created_at"] <= between["ended_at"] <= second["created_at"]
    reported = [event["message"] for event in get(f"{train}/events")["results"]]
    assert f"Preempted by job {urgent}." in reported
