"""mportal graph: the jobs that dependencies connect with a job, as a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import click

from monarch_client.cli.options import job_argument, project_option
from monarch_client.cli.output import Output, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.tables import STATUS_COLORS
from monarch_client.cli.terminal import one_line, say, tell

if TYPE_CHECKING:
    from monarch_client.wire.graph import GraphEdge, GraphJob, JobGraph

    Row: TypeAlias = tuple[str, GraphJob, GraphEdge | None]


@click.command()
@job_argument
@project_option
@output_options
@pass_session
def graph(session: Session, job_id: int, project: str | None, output: Output) -> None:
    """Show a job's dependencies and dependents as a tree.

    Each job is below one that it needs. A job that needs several is below each of them, and its
    own dependents only below the first.
    """
    found = session.client.graph(session.project(project), job_id)
    if output.quiet:
        output.rows(found.jobs, {}, key="job_id")
    else:
        output.one(found, lambda: _show(found))


def _show(found: JobGraph) -> None:
    expanded: set[int] = set()
    for indent, job, edge in _rows(found):
        is_again = job.job_id in expanded
        expanded.add(job.job_id)
        say(indent + _line(job, edge, is_asked=job.job_id == found.job_id, is_again=is_again))
    if not found.is_whole:
        tell("There are more jobs, further away from this one.")


def _rows(found: JobGraph) -> Iterator[Row]:
    """Yield each job below those that it needs, with its indent; depth first, by number."""
    jobs = {job.job_id: job for job in found.jobs}
    dependents: dict[int, list[GraphEdge]] = defaultdict(list)
    # Of a large graph, some edges lead to jobs that were left out.
    edges = [edge for edge in found.edges if edge.job_id in jobs and edge.needs in jobs]
    for edge in sorted(edges, key=lambda edge: edge.job_id, reverse=True):
        dependents[edge.needs].append(edge)
    needing = {edge.job_id for edge in edges}
    roots = [job for job in found.jobs if job.job_id not in needing]
    expanded: set[int] = set()
    # The indent of a row, the indent of the rows below it. Chains may be longer than recursion.
    stack: list[tuple[Row, str]] = [(("", job, None), "") for job in reversed(roots)]
    while stack:
        row, below = stack.pop()
        yield row
        number = row[1].job_id
        if number in expanded:
            continue
        expanded.add(number)
        for position, edge in enumerate(dependents[number]):
            is_last = position == 0
            here = below + ("`- " if is_last else "|- ")
            stack.append(((here, jobs[edge.job_id], edge), below + ("   " if is_last else "|  ")))


def _line(job: GraphJob, edge: GraphEdge | None, *, is_asked: bool, is_again: bool) -> str:
    status = click.style(job.status or "unknown", fg=STATUS_COLORS.get(job.status))
    notes = [
        "deleted" if job.deleted else "",
        f"after its {edge.after}" if edge is not None and edge.after != "success" else "",
        "can no longer start" if edge is not None and edge.state == "broken" else "",
        "see above" if is_again else "",
    ]
    remarks = ", ".join(note for note in notes if note)
    shown = f"{job.job_id} {one_line(job.name)} {status}" + (f" ({remarks})" if remarks else "")
    return f"{shown} <- this job" if is_asked else shown
