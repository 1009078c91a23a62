"""/{project}/jobs/{id}/nodes, mesh: failures, the grid of hosts and procs, the tree of actors."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt, Job, MeshTree
from jobs.statuses import JobKind, JobStatus
from jobs.web.base.element_keys import element_key
from jobs.web.jobs.mesh_tab import (
    MOST_ACTORS_OF_PROC,
    MOST_FAILED_IN_TREE,
    MOST_PROCS_IN_TREE,
)
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame
from tests.integration.web.conftest import SOURCE
from tests.mesh_frames import actor, dead, host, proc, tree

LARGEST_PAGE = 500_000


@pytest.fixture
def attempt(project, member) -> Attempt:
    job = make_job(
        project,
        status=JobStatus.RUNNING,
        submitted_by=member.user,
        num_nodes=200,
        kind=JobKind.MONARCH,
        spec_source=SOURCE,
    )
    return make_attempt(job)


def tell(attempt: Attempt, *hosts, **fields) -> None:
    reported = {**tree(0, *hosts, **fields), "t": clock.now().timestamp()}
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, body(reported))


def opening_of(html: str, *names: str) -> str:
    """Return the opening tag of the tree's part that shows a node."""
    tag = re.search(rf'<details id="mesh-{element_key(names)}"[^>]*>', html)
    assert tag, names
    return tag[0]


def test_a_dead_proc_stands_first_with_evidence_and_last_lines(viewer, attempt) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, body(frame(1, rank=1, text="the final line")))
    tell(attempt, host(0), host(1, procs=[proc("other<p2>"), dead()]))
    page = viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show=mesh")
    assert "2 hosts, 3 procs, 3 actors: 1 dead" in page
    assert "1 failure" in page
    assert "404 not_found: no agent" in page
    assert "the final line" in page
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes?show=mesh").content.decode()
    # In the tree it is open.
    assert opening_of(html, "host<h1>", "trainers<p1>").endswith("open>")
    assert not opening_of(html, "host<h1>", "other<p2>").endswith("open>")


def test_of_a_driver_that_ended_soon_the_hosts_alone_are_counted(viewer, attempt) -> None:
    tell(attempt, *(host(rank, procs=[], state="ended", why="It was short.") for rank in (0, 1)))
    Attempt.objects.update(ended_at=clock.now())
    page = viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show=mesh")
    assert "2 hosts: no failure had been reported" in page
    assert "It was short." in page


def test_the_failure_of_an_actor_is_shown_as_text(viewer, attempt) -> None:
    bad = actor(state="failed", why="ValueError: <script>alert(1)</script>")
    tell(attempt, host(0, procs=[proc(state="poisoned", actors=[bad])]))
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes?show=mesh").content.decode()
    assert "ValueError: &lt;script&gt;" in html
    assert "<script>alert" not in html


def test_the_part_that_lives_is_the_part_of_the_first_paint(viewer, attempt) -> None:
    tell(attempt)
    whole = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes?show=mesh").content.decode()
    part = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes/live?show=mesh").content.decode()
    assert re.search(r'<section class="mesh-tree".*</section>', part, re.DOTALL)[0] in whole


def test_many_procs_are_a_grid_and_a_tree_of_those_that_matter(viewer, attempt) -> None:
    hosts = [host(rank, procs=[proc(f"p<{n}>") for n in range(8)]) for rank in range(199)]
    tell(attempt, *hosts, host(199, procs=[dead()]))
    response = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes/live?show=mesh")
    html = response.content.decode()
    assert len(response.content) < LARGEST_PAGE
    assert html.count('class="m-alive"') == 199 * 8
    shown = [key for key in keys(hosts) if f'id="mesh-{key}"' in html]
    assert len(shown) == MOST_PROCS_IN_TREE - 1
    assert opening_of(html, "host<h199>", "trainers<p1>")
    assert "more procs, not listed here" in html
    assert f'id="mesh-{element_key(["host<h150>"])}"' not in html
    assert "And 186 more hosts, not listed here." in html


def keys(hosts) -> list[str]:
    return [element_key([each["id"], proc["id"]]) for each in hosts for proc in each["procs"]]


def test_what_failed_and_its_actors_are_not_listed_without_end(viewer, attempt) -> None:
    failed = actor("last<a>", state="failed")
    crowded = proc("full<p>", actors=[*(actor(f"a<{n}>") for n in range(400)), failed])
    lost = [dead(f"p<{n}>") for n in range(MOST_FAILED_IN_TREE + 50)]
    tell(attempt, host(0, procs=[crowded, *lost]))
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes/live?show=mesh").content.decode()
    assert opening_of(html, "host<h0>", "full<p>", "last<a>")
    assert f"And {401 - MOST_ACTORS_OF_PROC} more, not listed here." in html
    assert "And 51 more procs, not listed here." in html
    assert "401 actors" in html


def test_a_host_that_was_never_queried_is_not_called_healthy(viewer, attempt) -> None:
    tell(attempt, host(0, procs=[proc(), proc("p<2>", state="unknown", actors=[])]))
    path = f"/rl/jobs/{attempt.job_id}/nodes?show=mesh"
    assert "1 host, 2 procs, 1 actor: 1 unknown" in viewer.text(path)


def test_what_is_only_counted_is_not_called_well(viewer, attempt) -> None:
    tell(attempt, host(0, left_out=7), left_out=3)
    page = viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show=mesh")
    assert "4 hosts, 8 procs, 1 actor: all well that are listed" in page
    assert "and 7 more, not listed" in page
    assert "And 3 more hosts, not listed." in page


def test_silence_is_reported_as_unknown(viewer, attempt) -> None:
    tell(attempt)
    MeshTree.objects.update(at=clock.now() - timedelta(minutes=5))
    page = viewer.text(f"/rl/jobs/{attempt.job_id}/nodes?show=mesh")
    assert "How the meshes are now is not known" in page
    assert "alive" not in page


def test_after_the_end_it_is_what_was_reported_last(viewer, attempt) -> None:
    tell(attempt)
    Attempt.objects.update(ended_at=clock.now())
    Job.objects.update(status=JobStatus.SUCCEEDED, ended_at=clock.now())
    html = viewer.get(f"/rl/jobs/{attempt.job_id}/nodes?show=mesh").content.decode()
    assert "as last reported" in html
    assert 'id="job-nodes" data-final' in html


def test_before_anything_was_reported_the_page_says_so(viewer, attempt) -> None:
    path = f"/rl/jobs/{attempt.job_id}/nodes?show=mesh"
    assert "No meshes yet" in viewer.text(path)


def test_a_cell_of_an_actor_leads_to_the_log_of_its_rank_at_the_failure(viewer, attempt) -> None:
    tell(attempt, host(0), host(1, procs=[dead()]))
    at = int(MeshTree.objects.get().changes[0]["at"] * 1000)
    path = f"/rl/jobs/{attempt.job_id}/nodes/live?show=mesh"
    html = viewer.get(f"{path}&health=unwell").content.decode()
    assert re.findall(r'<a class="m-(\w+)"\s+href="([^"]+)"', html) == [
        ("dead", f"/rl/jobs/{attempt.job_id}/log-at?rank=1&amp;at={at}")
    ]
    assert "Not healthy: 1" in html
    assert len(re.findall("log-at", viewer.get(path).content.decode())) == 2


@pytest.mark.parametrize("query", ["attempt=7", "attempt=x"])
def test_what_is_not_there_is_not_found(viewer, attempt, query) -> None:
    assert viewer.get(f"/rl/jobs/{attempt.job_id}/nodes/live?show=mesh&{query}").status_code == 404


def test_the_last_report_before_a_failure_is_not_called_well(viewer, attempt) -> None:
    tell(attempt, host(0, procs=[proc(actors=[actor()])]))
    address = f"/rl/jobs/{attempt.job_id}/nodes?show=mesh"
    running = viewer.text(address)
    assert "all well" in running
    assert "Not healthy: 0" in running
    Attempt.objects.update(ended_at=clock.now())
    ended = viewer.get(address).content.decode()
    assert "no failure had been reported" in ended
    assert "as last reported before the end" in ended
    assert 'id="job-mesh" class="is-over"' in ended
    for untrue in ("all well", "Not healthy"):
        assert untrue not in ended
