"""The picture of a graph: levels, folding, and lines that lead to the right."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable

from jobs.web.jobs.graph_picture import FOLD_ABOVE, NODE_WIDTH, picture
from monarch_client.wire.graph import GraphEdge, GraphJob, JobGraph


def graph_of(jobs: dict[int, str], edges: Iterable[tuple[int, int]], own: int = 1) -> JobGraph:
    """Return a graph of jobs with a status each, and of pairs: the second waits for the first."""
    return JobGraph(
        job_id=own,
        jobs=[
            GraphJob(job_id=number, name=f"job-{number}", status=status)
            for number, status in jobs.items()
        ],
        edges=[
            GraphEdge(
                job_id=then,
                needs=first,
                after="success",
                state="met" if jobs[first] == "SUCCEEDED" else "open",
            )
            for first, then in edges
        ],
    )


def layers(number: int, wide: int) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Return levels of jobs, and edges from each job to all of the next level."""
    levels = [list(range(1 + row * wide, 1 + (row + 1) * wide)) for row in range(number)]
    edges = [
        (first, then)
        for before, behind in itertools.pairwise(levels)
        for first in before
        for then in behind
    ]
    return levels, edges


def test_a_job_is_right_of_all_that_it_depends_on_and_no_two_boxes_overlap():
    shown = picture(
        graph_of(
            dict.fromkeys(range(1, 6), "QUEUED"), [(1, 2), (1, 3), (2, 4), (3, 4), (1, 4), (4, 5)]
        )
    )
    places = {node.jobs[0].job_id: node for node in shown.nodes}
    for node in shown.nodes:
        assert all(before.x + NODE_WIDTH < node.x for before in node.needs)
    assert len({(node.x, node.y) for node in shown.nodes}) == 5
    assert [each.title for each in places[4].needs] == ["job-2 #2", "job-3 #3", "job-1 #1"]
    assert all(node.x + NODE_WIDTH <= shown.width for node in shown.nodes)


def test_of_a_large_graph_the_levels_that_have_succeeded_are_one_box():
    levels, edges = layers(10, 20)
    jobs = {number: "SUCCEEDED" for level in levels[:7] for number in level}
    jobs |= dict.fromkeys(levels[7], "RUNNING")
    jobs |= {number: "QUEUED" for level in levels[8:] for number in level}
    jobs[levels[7][3]] = "FAILED"
    graph = graph_of(jobs, edges, own=levels[8][0])
    shown = picture(graph)
    assert shown.is_folded and len(shown.nodes) <= 60
    done = next(node for node in shown.nodes if node.state == "140 succeeded")
    assert done.folded and done.x < min(node.x for node in shown.nodes if node is not done)
    assert any(node.status == "FAILED" and not node.folded for node in shown.nodes)
    assert [node.jobs[0].job_id for node in shown.nodes if node.is_own] == [levels[8][0]]
    assert sum(len(node.jobs) for node in shown.nodes) == 200
    for node in shown.nodes:
        assert all(before.x < node.x for before in node.needs)
    assert len(picture(graph, unfolded=True).nodes) == 200


def test_a_small_graph_is_never_folded():
    levels, edges = layers(4, FOLD_ABOVE // 4)
    jobs = {number: "SUCCEEDED" for level in levels for number in level}
    shown = picture(graph_of(jobs, edges))
    assert len(shown.nodes) == FOLD_ABOVE and not shown.is_folded and not shown.can_fold


def test_the_jobs_of_an_array_are_one_box_with_their_statuses():
    jobs = [
        GraphJob(job_id=number, name=f"s-{number}", status=status, array=7, array_name="sweep")
        for number, status in ((2, "SUCCEEDED"), (3, "FAILED"), (4, "SUCCEEDED"))
    ]
    first = GraphJob(job_id=1, name="prepare", status="SUCCEEDED", deleted=True)
    edges = [GraphEdge(job_id=job.job_id, needs=1, after="success", state="met") for job in jobs]
    shown = picture(JobGraph(job_id=3, jobs=[first, *jobs], edges=edges))
    one, array = shown.nodes
    assert (one.state, one.is_link) == ("Succeeded, deleted", False)
    assert (array.title, array.state, array.status) == (
        "sweep array 7",
        "1 failed, 2 succeeded",
        "FAILED",
    )
    assert array.is_own and array.after == "prepare #1"
    assert len(shown.edges) == 1


def test_a_chain_of_thousands_is_drawn_at_once():
    numbers = range(1, 3001)
    graph = graph_of(dict.fromkeys(numbers, "QUEUED"), itertools.pairwise(numbers))
    began = time.process_time()
    assert len(picture(graph).nodes) == len(numbers)
    # It takes 0.1 s of the processor; with the square of the levels it was 10 s.
    assert time.process_time() - began < 3
