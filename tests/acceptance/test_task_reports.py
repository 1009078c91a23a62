"""The tasks of a running job: on its page, in REST, in the terminal, and in the log."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.acceptance.test_jobs import JOBS, log_lines, newest, signed_in_page, submit
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOB = """
name: seen-tasks
num_nodes: 2
portal: {meshes: {workers: 2}}
run: |
  cat > driver.py <<'END'
  import time
  from monarch_client.context import ActorOptions, JobContext
  from mportal_runtime import meshes

  def train(step):
      print("loss", step)
      if step == 3:
          raise ValueError(f"no gradient in step {step}")
      return bytes(1_000_000)

  class Parameters:
      def add(self):
          print("added")

  def rest():
      time.sleep(600)

  context = JobContext(meshes.workers)
  parameters = context.create_actor(Parameters, options=ActorOptions(name="parameters"))
  context.get(parameters.add())
  steps = [context.create_task(train, (step,)) for step in range(6)]
  context.wait(steps, len(steps))
  rests = [context.create_task(rest) for _ in range(2)]
  context.wait(rests)
  END
  python3 driver.py
"""


@pytest.mark.monarch
@pytest.mark.feature("S4.1", "S4.6")
def test_tasks_actors_objects_and_failures_are_seen_while_a_job_runs(
    portal: PortalProcess, tmp_path
) -> None:
    submitted = submit(portal, tmp_path, JOB, "-q")
    assert submitted.returncode == 0, submitted.stderr
    job = newest(portal, "seen-tasks")

    def reported() -> dict[str, Any]:
        with portal.client() as client:
            found: dict[str, Any] = client.get(f"{JOBS}/{job['id']}/tasks").json()
        return found

    def states(name: str) -> dict[str, Any]:
        rows = [row for context in reported()["contexts"] for row in context["tasks"]]
        return next((row for row in rows if row["name"] == name), {})

    assert eventually(lambda: states("rest").get("running"), timeout_s=120), reported()
    assert (states("train")["finished"], states("train")["failed"]) == (5, 1)
    (context,) = reported()["contexts"]
    hosts = {row["name"]: row for row in context["hosts"]}
    assert sum(row["objects"] for row in hosts.values()) == 5
    assert sum(row["bytes"] for row in hosts.values()) > 5_000_000
    (actor,) = context["actors"]
    assert (actor["name"], actor["kind"], actor["state"]) == ("parameters", "Parameters", "alive")
    (failure,) = context["failures"]
    assert (failure["name"], failure["host"] in hosts) == ("train", True)
    assert "ValueError: no gradient in step 3" in failure["trace"]

    page = signed_in_page(portal, f"/default/jobs/{job['id']}/nodes?show=tasks")
    for words in (">train<", ">rest<", ">parameters<", "no gradient in step 3", failure["host"]):
        assert words in page
    shown = portal.mportal("top", str(job["id"]))
    assert re.search(r"^train +0 +0 +5 +1 ", shown.stdout, re.MULTILINE), shown.stdout
    assert re.search(r"^parameters +Parameters +alive ", shown.stdout, re.MULTILINE)
    assert "ValueError: no gradient in step 3" in shown.stdout
    as_json = json.loads(portal.mportal("top", str(job["id"]), "-o", "json").stdout)
    assert as_json["tasks"]["contexts"][0]["actors"] == [actor]
    lines = [line["text"] for line in log_lines(portal, job, stream="stdout")]
    assert sum(bool(re.match(r"\(train, pid \d+\) loss \d", line)) for line in lines) == 6
    assert f"(parameters.add, pid {actor['pid']}) added" in lines

    assert portal.mportal("cancel", str(job["id"])).returncode == 0
    assert eventually(lambda: newest(portal, "seen-tasks")["is_final"], timeout_s=60)
    assert states("train")["finished"] == 5
    assert reported()["is_final"]
