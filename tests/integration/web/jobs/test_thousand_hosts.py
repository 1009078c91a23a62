"""A job of a thousand hosts, reported by its runner: everything stays right, and bounded."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from django.test import Client

from jobs.attempt_tokens import attempt_token
from jobs.backends import registry
from jobs.backends.fake.backend import FakeBackend
from jobs.models import Attempt, Job
from jobs.reconcilers import running
from tests.factories import make_attempt, make_job, make_spec
from tests.frame_bytes import body, frame
from tests.integration.api.conftest import Caller, caller_for
from tests.integration.follower.steps import launched
from tests.mesh_frames import dead, host, proc, tree
from tests.sample_frames import gpu, sample

HOSTS = 1000
LOST, FAILED = (13, 500, 999), {7: 3, 430: 1, 431: 1}
# A line each, and so often; the last numbers are for the ends.
LINES = 5
LARGEST_PART, LARGEST_PAGE = 200_000, 300_000
LARGEST_MESH, LARGEST_ANSWER = 350_000, 600_000
SMALL = 10_000
LONGEST_S = 5.0


class Runner:
    """A runner that posts frames for all ranks, as rank 0 does."""

    def __init__(self, attempt: Attempt) -> None:
        self._path = f"/api/v1/attempts/{attempt.pk}/frames"
        token = attempt_token(attempt.job_id, attempt.number)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._seq = 0
        self._http = Client()

    def tell_all(self, kind: str, ranks: Any = range(HOSTS), **fields: Any) -> None:
        """Send one more frame of each rank; a field may depend on it."""
        self._seq += 1
        self.post(
            *(
                frame(self._seq, kind, rank=rank, **{k: _of(v, rank) for k, v in fields.items()})
                for rank in ranks
            )
        )

    def post(self, *frames: dict[str, Any]) -> None:
        """Post these frames, which must be taken."""
        began = time.monotonic()
        answer = self._http.post(
            self._path, body(*frames), content_type="application/x-ndjson", headers=self._headers
        )
        assert answer.status_code == 200, answer.content
        assert time.monotonic() - began < LONGEST_S

    def end(self) -> None:
        """Send the verdict of rank 0."""
        self._seq += 1
        lost = [
            frame(self._seq + n, "worker", about=rank, status="LOST", detail="It fell silent.")
            for n, rank in enumerate(LOST)
        ]
        end = {"reason": "USER_CODE", "exit_code": 3, "message": "Rank 7 returned exit code 3."}
        self.post(*lost, frame(self._seq + len(lost), "end", **end))


def _of(value: Any, rank: int) -> Any:
    return value(rank) if callable(value) else value


@pytest.fixture
def attempt(project, settings, tmp_path) -> Attempt:
    """Create an attempt launched on a thousand nodes that exist only in reports."""
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    settings.MEDIA_ROOT = tmp_path / "blobs"
    backend = registry.get("fake")
    assert isinstance(backend, FakeBackend)
    backend.set_capacity(HOSTS)
    spec = make_spec(num_nodes=HOSTS, portal={"meshes": {"trainers": HOSTS}})
    return launched(
        make_job(project, backend_name="fake", num_nodes=HOSTS, kind="monarch", spec=spec)
    )


@pytest.fixture
def runner(attempt) -> Runner:
    """Return a runner that has reported for all ranks: states, health, some lines, the meshes."""
    runner = Runner(attempt)
    runner.tell_all(
        "worker",
        status="RUNNING",
        host=lambda rank: f"node-{rank}",
        address=lambda rank: f"10.1.{rank // 250}.{rank % 250}:22222",
        mesh="trainers",
        pid=lambda rank: 1000 + rank,
        python="3.11.9",
    )
    for number in range(LINES):
        runner.tell_all("line", text=lambda rank, n=number: f"step {n} of rank {rank}")
    gpus = [gpu(index, 50.0) for index in range(2)]
    half = HOSTS // 2
    for ranks in (range(half), range(half, HOSTS)):
        runner.post(*(sample(10, rank=rank, gpus=gpus) for rank in ranks))
    names = [(f"trainers<a{rank}>", f"trainers<b{rank}>") for rank in range(HOSTS)]
    hosts = [host(rank, procs=[proc(one) for one in names[rank]]) for rank in range(HOSTS)]
    hosts[900]["procs"][0] = dead("trainers<a900>")
    runner.post(tree(10, *hosts))
    return runner


@pytest.fixture
def api(viewer) -> Caller:
    """Return an API caller for the same person, by token."""
    return caller_for(viewer.user)


def content(get: Any, path: str, most: int, **query: Any) -> str:
    """Return the answer, which is neither large nor late."""
    began = time.monotonic()
    answer = get(path, query)
    text = answer.content.decode()
    assert time.monotonic() - began < LONGEST_S, path
    assert answer.status_code == 200, text[:500]
    assert len(text) < most, (path, len(text))
    return text


def rows_of(html: str) -> list[int]:
    """List the ranks in the table of workers."""
    return [int(rank) for rank in re.findall(r'<tr id="worker-(\d+)"', html)]


@pytest.mark.feature("S3.6")
def test_while_a_thousand_hosts_run_page_and_answers_are_right_and_small(
    viewer, api, attempt, runner
):
    path, base = f"/rl/jobs/{attempt.job_id}", f"/projects/rl/jobs/{attempt.job_id}"
    # Sent again with every change of the job, and at the start of every page.
    content(viewer.get, f"{path}/live", LARGEST_PART)
    live = content(viewer.get, f"{path}/nodes/live", LARGEST_PART)
    assert "1000 nodes: 1000 running." in live
    assert rows_of(live) == list(range(100))
    assert rows_of(content(viewer.get, f"{path}/nodes", LARGEST_PAGE)) == list(range(100))
    for begin in (0, 500, 900):
        html = content(viewer.get, f"{path}/nodes", LARGEST_PAGE, workers=str(begin))
        assert rows_of(html) == list(range(begin, begin + 100))
    hosts = content(viewer.get, f"{path}/nodes/live", LARGEST_PART, show="metrics")
    assert "<b>1000 hosts</b> now: mean GPU 50 %" in hosts
    mesh = content(viewer.get, f"{path}/nodes/live", LARGEST_MESH, show="mesh")
    assert "1000 hosts, 2000 procs, 2000 actors: 1 dead" in mesh
    assert "Node 900" in mesh and "And 800 more hosts, all healthy." in " ".join(mesh.split())
    content(api.get, f"{base}/metrics", LARGEST_ANSWER)
    content(api.get, f"{base}/mesh", LARGEST_ANSWER)
    workers = api.get(f"{base}/attempts").json()["results"][0]["workers"]
    assert [each["rank"] for each in workers] == list(range(HOSTS))
    assert {each["status"] for each in workers} == {"RUNNING"}
    newest = api.get(f"{base}/attempts", {"workers": "newest"}).json()["results"][0]
    assert newest["workers"] == workers
    make_attempt(attempt.job, ended_at="2026-01-01T00:00:00Z")
    for wanted in ("newest", "none"):
        reported = json.loads(content(api.get, f"{base}/attempts", SMALL, workers=wanted))[
            "results"
        ]
        assert [(each["number"], each["workers"]) for each in reported] == [(2, []), (1, [])]
    assert api.get(f"{base}/attempts", {"workers": "some"}).status_code == 400


@pytest.mark.feature("S3.6")
def test_each_line_of_a_thousand_hosts_is_in_the_log_once_by_pages_and_by_rank(
    api, attempt, runner
):
    base = f"/projects/rl/jobs/{attempt.job_id}/logs"
    texts: list[str] = []
    after = "1:0"
    while after:
        page = api.get(base, {"after": after, "limit": 1000}).json()
        assert len(page["results"]) <= 1000
        texts += [line["text"] for line in page["results"]]
        after = page["next"]
    said = [f"step {n} of rank {rank}" for n in range(LINES) for rank in range(HOSTS)]
    assert [text for text in texts if text.startswith("step")] == said
    own = [line["text"] for line in api.get(base, {"rank": 999}).json()["results"]]
    assert [text for text in own if text.startswith("step")] == [
        f"step {n} of rank 999" for n in range(LINES)
    ]


@pytest.mark.feature("S3.6")
def test_of_a_thousand_hosts_each_exit_code_and_each_loss_is_counted(viewer, api, attempt, runner):
    living = [rank for rank in range(HOSTS) if rank not in LOST]
    runner.tell_all("exit", living, exit_code=lambda rank: FAILED.get(rank, 0))
    runner.tell_all("worker", living, status="EXITED", exit_code=lambda r: FAILED.get(r, 0))
    runner.end()
    running.step(attempt.job_id)
    job = Job.objects.get(pk=attempt.job_id)
    assert (job.status, job.exit_code) == ("FAILED", 3)
    [reported] = api.get(f"/projects/rl/jobs/{job.pk}/attempts").json()["results"]
    by_rank = {each["rank"]: (each["status"], each["exit_code"]) for each in reported["workers"]}
    assert by_rank == {
        rank: ("LOST", None) if rank in LOST else ("EXITED", FAILED.get(rank, 0))
        for rank in range(HOSTS)
    }
    html = content(viewer.get, f"/rl/jobs/{job.pk}/nodes", LARGEST_PAGE)
    assert "1000 nodes: 997 exited, 3 lost. Exit code 0 on 994, 1 on 2, 3 on 1." in html
    assert rows_of(html) == sorted([*LOST, *FAILED])
    assert "Unhealthy: 6" in html
    log = api.get(f"/projects/rl/jobs/{job.pk}/logs", {"before": "end", "limit": 10}).json()
    ends = [line["text"] for line in log["results"] if "was not heard" in line["text"]]
    assert [int(re.search(r"rank (\d+)", text)[1]) for text in ends] == list(LOST)
