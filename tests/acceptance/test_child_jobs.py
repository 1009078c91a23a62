"""A real job submits others from its own program, with what it finds in its environment."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.waiting import eventually

JOBS = "/api/v1/projects/default/jobs"
MPORTAL = Path(sys.executable).with_name("mportal")
WAITS = "trap 'exit 0' TERM; echo running; while :; do sleep 0.1; done"
PARENT = f"""
set -e
cat > child.yaml <<'END'
name: NAME
run: "{WAITS}"
END
sed 's/NAME/tied/' child.yaml > tied.yaml
(sed 's/NAME/free/' child.yaml; echo 'portal: {{detached: true}}') > free.yaml
printf 'name: eval\\nrun: echo evaluated\\n' > eval.yaml
{MPORTAL} submit -f eval.yaml --follow
{MPORTAL} submit -f tied.yaml -q
{MPORTAL} submit -f free.yaml -q
{MPORTAL} ps -o json | grep -c '"parent"'
{MPORTAL} ps --user me || true
{MPORTAL} cluster list || echo "and nothing else"
{WAITS}
"""


@pytest.mark.feature("S2.6")
def test_a_driver_submits_children_that_end_with_it_unless_they_are_detached(own_portal, tmp_path):
    own_portal.start()

    def get(path: str, **params: object) -> dict:
        with own_portal.client() as client:
            answer: dict = client.get(f"{JOBS}/{path}", params=params).json()
            return answer

    def texts(job: int) -> list[str]:
        rows = get(f"{job}/logs", limit=1000)["results"]
        return [row["text"] for row in rows]

    def children(parent: int) -> dict[str, dict]:
        with own_portal.client() as client:
            rows = client.get(JOBS, params={"parent": parent}).json()["results"]
        return {row["name"]: row for row in rows}

    file = tmp_path / "parent.json"
    file.write_text(json.dumps({"name": "driver", "run": PARENT}))
    said = own_portal.mportal("submit", "-f", str(file), "-d", "-q")
    assert said.returncode == 0, said.stdout + said.stderr
    parent = int(re.findall(r"\d+", said.stdout)[0])

    def all_run() -> bool:
        found = children(parent)
        runs = [found.get(name, {}).get("status") == "RUNNING" for name in ("tied", "free")]
        return all(runs) and "running" in texts(parent)

    assert eventually(all_run, timeout_s=120), (texts(parent), own_portal.logs())
    found = children(parent)
    assert found["eval"]["status"] == "SUCCEEDED"
    lines = texts(parent)
    assert "evaluated" in lines  # the child's log, followed by its parent
    assert "and nothing else" in lines
    assert not any(re.search(r"mp[ajt]_[A-Za-z0-9]", line) for line in lines)
    by = {row["submitted_by"] for row in found.values()} | {get(str(parent))["submitted_by"]}
    assert len(by) == 1

    assert own_portal.mportal("cancel", str(parent)).returncode == 0
    for job in (parent, found["tied"]["id"]):
        assert eventually(lambda job=job: get(str(job))["is_final"], timeout_s=90), get(str(job))
        assert get(str(job))["status"] == "CANCELLED"
    tied = get(str(found["tied"]["id"]))
    assert tied["stop_reason"] == "PARENT"
    assert tied["message"] == f"Job {parent}, which submitted it, has ended (cancelled)."
    assert get(str(found["free"]["id"]))["status"] == "RUNNING"
    assert own_portal.mportal("cancel", str(found["free"]["id"])).returncode == 0
