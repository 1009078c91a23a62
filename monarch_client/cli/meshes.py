"""mportal meshes: the hosts, procs and actors of a Monarch job, and what failed when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from monarch_client.cli.exit_codes import NOTHING_FOUND
from monarch_client.cli.options import job_argument, project_option
from monarch_client.cli.output import Output, age, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import one_line, say, tell

if TYPE_CHECKING:
    from monarch_client.wire.mesh import Mesh, MeshActor, MeshChange, MeshHost, MeshProc

# The page and -o json have all of them.
_MOST_CHANGES = 10
Row = tuple[str, str, str]


@click.command()
@job_argument
@project_option
@click.option("--attempt", "-a", type=click.IntRange(1), help="The attempt; by default the newest.")
@output_options
@pass_session
def meshes(
    session: Session, /, job_id: int, project: str | None, attempt: int | None, *, output: Output
) -> None:
    """Show the hosts, procs and actors of a Monarch job.

    With their states, and what failed when. Exits with 1 if there is no report.
    """
    found = session.client.meshes(session.project(project), job_id, attempt=attempt)
    if found.at is None and output.form == "table":
        tell(_why_nothing(found))
    else:
        output.one(found, lambda: _show(found), key="attempt")
    if not found.hosts:
        click.get_current_context().exit(NOTHING_FOUND)


def _why_nothing(found: Mesh) -> str:
    if not found.is_monarch:
        return "This is a plain job: it has no meshes."
    if found.is_over:
        return (
            "No meshes were reported in this attempt: its driver attached none, or did not have "
            "them watched."
        )
    return "No meshes yet. They appear a few seconds after the driver attaches to the first one."


def _show(found: Mesh) -> None:
    over = ", which is over: as last reported" if found.is_over else ""
    say(f"Attempt {found.attempt}{over}, {age(found.at)} ago")
    if found.why:
        say(f"How they are now is not known: {one_line(found.why)}")
    say("")
    print_table(["HOST, PROC, ACTOR", "STATE", ""], [_drawn(row) for row in _rows(found)])
    if found.changes:
        say("")
        for change in found.changes[:_MOST_CHANGES]:
            _show_change(change)
        if len(found.changes) > _MOST_CHANGES:
            tell(f"{len(found.changes) - _MOST_CHANGES} earlier changes: -o json has them.")


def _drawn(row: tuple[int, Row]) -> Row:
    depth, (name, state, why) = row
    return ("  " * depth + name, state, one_line(why))


def _rows(found: Mesh) -> Iterator[tuple[int, Row]]:
    """Yield each line of the tree with its depth."""
    for host in found.hosts:
        yield 0, (_name(host), _state(host), host.why)
        for proc in host.procs:
            yield 1, (_short(proc.id), _state(proc), proc.why)
            for actor in proc.actors:
                kind = f" ({actor.kind})" if actor.kind else ""
                yield 2, (f"{_short(actor.id)}{kind}", _state(actor), _last_line(actor.why))
            yield from _left_out(2, proc.left_out, "actors")
        yield from _left_out(1, host.left_out, "procs")
    yield from _left_out(0, found.left_out, "hosts")


def _left_out(depth: int, count: int, of_what: str) -> Iterator[tuple[int, Row]]:
    if count:
        yield depth, (f"and {count} more {of_what}, not listed", "", "")


def _name(host: MeshHost) -> str:
    return "driver" if host.rank is None else f"node {host.rank} {host.mesh}".rstrip()


def _short(name: str) -> str:
    """Return Monarch's name without its unique suffix: trainers for trainers<p1>."""
    label, _, rest = name.partition("<")
    return label or rest.removesuffix(">")


def _state(node: MeshHost | MeshProc | MeshActor) -> str:
    was = "" if node.state == node.told else f", was {node.told}"
    return f"{node.state}{was}"


def _last_line(why: str) -> str:
    """Return the last line of a traceback, which has the error."""
    return (why.strip().splitlines() or [""])[-1]


def _show_change(change: MeshChange) -> None:
    names = [_short(each) for each in (change.actor, change.proc, change.host) if each]
    where = " of ".join(names) or "the driver"
    rank = "" if change.rank is None else f" on node {change.rank}"
    say(f"{age(change.at)} ago: {one_line(where)}{rank} is {change.state}, was {change.was}")
    for line in change.why.strip().splitlines():
        say(f"    {one_line(line)}")
    if change.lines:
        say(f"  the last lines of node {change.rank} by then:")
        for each in change.lines:
            say(f"    {each.number} {one_line(each.text)}")
