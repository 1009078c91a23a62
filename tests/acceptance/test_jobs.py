"""Real jobs on a real portal: submitted by the command line, run by real runners and Monarch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

from tests.portal_process import CHECKOUT, PortalProcess
from tests.waiting import eventually

JOBS = "/api/v1/projects/default/jobs"


def submit(portal: PortalProcess, tmp_path: Path, text: str, *flags: str):
    """Run `mportal submit` on a YAML text; it follows the job unless flags turn that off."""
    file = tmp_path / "job.yaml"
    file.write_text(text)
    return portal.mportal("submit", "-f", str(file), *(flags or ("--follow",)))


def newest(portal: PortalProcess, name: str) -> dict:
    with portal.client() as client:
        return client.get(JOBS, params={"name": name}).json()["results"][0]


def attempts(portal: PortalProcess, job: dict) -> list[dict]:
    with portal.client() as client:
        return client.get(f"{JOBS}/{job['id']}/attempts").json()["results"]


def log_lines(portal: PortalProcess, job: dict, **params) -> list[dict]:
    with portal.client() as client:
        answer = client.get(f"{JOBS}/{job['id']}/logs", params={"limit": 1000, **params})
        return answer.json()["results"]


# The acceptance walk of `make test`.
@pytest.mark.smoke
@pytest.mark.feature("P1.1", "S0.2", "S0.3", "S2.1")
def test_the_example_runs_on_two_hosts_and_its_sums_are_right(portal):
    done = portal.mportal(
        "submit", "--follow", "-f", str(CHECKOUT / "examples/hello_mesh/job.yaml")
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all sums are right" in done.stdout
    job = newest(portal, "hello-mesh")
    assert (job["status"], job["exit_code"], job["kind"]) == ("SUCCEEDED", 0, "monarch")
    (attempt,) = attempts(portal, job)
    assert [w["rank"] for w in attempt["workers"]] == [0, 1]
    assert eventually(lambda: attempts(portal, job)[0]["stages"][-1]["ended_at"])
    stages = attempts(portal, job)[0]["stages"]
    assert [s["state"] for s in stages] == ["done"] * 5
    begins = [s["started_at"] for s in stages]
    assert begins == sorted(begins)
    assert all(s["duration_s"] >= 0 for s in stages)


@pytest.mark.feature("S3.1")
def test_a_plain_job_runs_on_every_node_with_its_own_rank_and_exit_code(portal, tmp_path):
    text = """
name: ranks
num_nodes: 3
setup: echo ready
run: |
  echo "node $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES"
  [ $SKYPILOT_NODE_RANK -lt 2 ] || { sleep 1; exit 10; }
"""
    done = submit(portal, tmp_path, text)
    job = newest(portal, "ranks")
    assert (job["status"], job["stop_reason"]) == ("FAILED", "USER_CODE")
    assert done.returncode == job["exit_code"] == 10
    (attempt,) = attempts(portal, job)
    codes = {w["rank"]: w["exit_code"] for w in attempt["workers"]}
    assert codes == {0: 0, 1: 0, 2: 10}
    said = {line["text"] for line in log_lines(portal, job, stream="stdout")}
    assert {f"node {rank} of 3" for rank in range(3)} <= said


@pytest.mark.feature("S3.3")
def test_a_driver_runs_once_on_the_head(portal, tmp_path):
    text = """
name: head-only
num_nodes: 2
run: echo "driver on $SKYPILOT_NODE_RANK"
portal: {meshes: {workers: 2}}
"""
    assert submit(portal, tmp_path, text).returncode == 0
    job = newest(portal, "head-only")
    said = [line["text"] for line in log_lines(portal, job, stream="stdout")]
    assert [text for text in said if text.startswith("driver")] == ["driver on 0"]


ENDINGS = {
    "setup": ("setup: exit 9\nrun: echo never", "SETUP", 9),
    "user": ("run: exit 7", "USER_CODE", 7),
    "raises": (
        "run: python -c 'raise RuntimeError(\"boom\")'\nportal: {meshes: {m: 1}}",
        "USER_CODE",
        1,
    ),
    "killed": ("run: kill -9 $$\nportal: {meshes: {m: 1}}", "USER_CODE", 137),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_an_ending_has_its_reason_its_exit_code_and_says_what_to_do(portal, tmp_path, name):
    body, reason, code = ENDINGS[name]
    done = submit(portal, tmp_path, f"name: end-{name}\n{body}\n")
    job = newest(portal, f"end-{name}")
    assert (job["status"], job["stop_reason"], job["exit_code"]) == ("FAILED", reason, code)
    assert done.returncode == code
    assert job["message"]
    assert job["hint"]


def test_a_cancelled_job_leaves_no_process_directory_or_cluster(portal, tmp_path):
    text = "name: to-cancel\nrun: |\n  setsid sleep 1000 &\n  echo started\n  sleep 1000\n"
    submit(portal, tmp_path, text, "--detach")
    job = newest(portal, "to-cancel")
    assert eventually(lambda: any(li["text"] == "started" for li in log_lines(portal, job)))
    assert portal.mportal("cancel", str(job["id"])).returncode == 0
    assert eventually(lambda: newest(portal, "to-cancel")["status"] == "CANCELLED")
    local = portal.home.path / "local"
    assert eventually(lambda: not [p for p in local.glob("mp*") if f"-{job['id']}-" in p.name])
    assert not sleeping()


def sleeping() -> list[str]:
    """List the processes of `sleep 1000`, children of any process."""
    commands = Path("/proc").glob("[0-9]*/cmdline")
    return [str(path) for path in commands if _content(path) == b"sleep\x001000\x00"]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.feature("P7.3")
def test_page_command_line_and_rest_show_the_same_jobs(portal, tmp_path):
    for name in ("same-a", "same-b"):
        submit(portal, tmp_path, f"name: {name}\nrun: 'true'\n")
    with portal.client() as client:
        rest = [job["id"] for job in client.get(JOBS).json()["results"]]
    listed = json.loads(portal.mportal("ps", "-o", "json").stdout)
    listed = listed["results"] if isinstance(listed, dict) else listed
    assert [job["id"] for job in listed] == rest[: len(listed)]
    page = signed_in_page(portal, "/default/jobs")
    positions = [page.index(f'/default/jobs/{number}"') for number in rest[:2]]
    assert positions == sorted(positions)


def signed_in_page(portal: PortalProcess, path: str) -> str:
    """Return the page that a user sees after signing in with the one-time link and its button."""
    link = portal.manage("sign_in_link").stdout.strip()
    with httpx.Client(base_url=portal.url, follow_redirects=True) as browser:
        form = browser.get(link).text
        token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', form)[0]
        assert browser.post(link, data={"csrfmiddlewaretoken": token}).is_success
        return browser.get(path).text


@pytest.mark.feature("P3.1")
def test_lines_of_all_ranks_are_followed_and_can_be_resumed_by_cursor(portal, tmp_path):
    text = 'name: lines\nnum_nodes: 2\nrun: for i in $(seq 200); do echo "$i"; done\n'
    done = submit(portal, tmp_path, text)
    assert done.returncode == 0
    job = newest(portal, "lines")
    lines = log_lines(portal, job, stream="stdout")
    for rank in (0, 1):
        assert [li["text"] for li in lines if li["rank"] == rank] == [str(i) for i in range(1, 201)]
    numbers = [line["line"] for line in lines]
    assert numbers == sorted(set(numbers))
    rest = log_lines(portal, job, stream="stdout", after=f"1:{numbers[99]}")
    assert [line["line"] for line in rest] == numbers[100:]
