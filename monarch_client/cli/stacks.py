"""mportal stacks: request and print stack dumps of the Python processes of a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import DETACHED, FAILED_WITHOUT_CODE, NOTHING_FOUND, TIMED_OUT
from monarch_client.cli.options import job_argument, project_option
from monarch_client.cli.output import Output, age, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import complain, say, tell
from monarch_client.wire.ranks import rank_count, rank_ranges

if TYPE_CHECKING:
    from monarch_client.wire.stacks import ProcessStacks, StackDump, Stacks

_ASK_AGAIN_S = 1.0
# The portal itself waits for two minutes.
_TRIES = 150

COLUMNS: dict[str, Callable[[Any], str]] = {
    "ID": lambda dump: str(dump.id),
    "NODE": lambda dump: str(dump.rank),
    "PROCESS": lambda dump: "all" if dump.pid is None else str(dump.pid),
    "STATE": lambda dump: dump.state,
    "ASKED": lambda dump: f"{age(dump.asked_at)} ago",
    "BY": lambda dump: dump.asked_by,
    "WHY": lambda dump: dump.why,
}


@click.command(
    epilog=examples(
        "mportal stacks ppo",
        "mportal stacks ppo -r 3 --pid 4711",
    )
)
@job_argument
@project_option
@click.option(
    "--node",
    "--rank",
    "rank",
    "-r",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="The node.",
)
@click.option(
    "--pid", type=click.IntRange(1), help="Only this process; by default all Python processes."
)
@click.option(
    "--all-nodes",
    "--all-ranks",
    "all_ranks",
    is_flag=True,
    help="Of all nodes, at most 64, equal stacks printed once.",
)
@click.option("--list", "is_list", is_flag=True, help="List earlier dumps.")
@click.option("--show", "shown", type=click.IntRange(1), help="Show the earlier dump with this ID.")
@click.option("--attempt", "-a", type=click.IntRange(1), help="With --list: of this attempt.")
@output_options
@pass_session
def stacks(
    session: Session, /, job_id: int, project: str | None, output: Output, **choice: Any
) -> None:
    """Show the current Python calls of every thread on a node."""
    slug, context = session.project(project), click.get_current_context()
    if choice["is_list"]:
        found = session.client.stacks(slug, job_id, attempt=choice["attempt"])
        output.rows(
            found.dumps, COLUMNS, empty=f"No stack dumps. To request one: mportal stacks {job_id}"
        )
        return
    if choice["all_ranks"]:
        _dump_all(session, output, slug, job_id)
        return
    if choice["shown"] is not None:
        kept = session.client.stacks(slug, job_id, dump=choice["shown"]).dumps
        if not kept:
            complain(f"Job {job_id} has no stack dump {choice['shown']}.")
            context.exit(NOTHING_FOUND)
        dump = kept[0]
    else:
        request = session.client.ask_stacks(slug, job_id, rank=choice["rank"], pid=choice["pid"])
        dump = _answered(session, slug, job_id, request)
    _finish(output, dump, dump)


def _finish(output: Output, answer: StackDump | Stacks, dump: StackDump) -> None:
    """Print the stacks of one dump, or `answer` as JSON; exit by the state of the dump."""
    output.one(answer, lambda: _show(dump))
    if dump.state == "asked":
        click.get_current_context().exit(TIMED_OUT)
    if dump.state != "done":
        click.get_current_context().exit(FAILED_WITHOUT_CODE)


def _dump_all(session: Session, output: Output, slug: str, job_id: int) -> None:
    """Request the stacks of all ranks, and print each that differs once with its ranks."""
    found = session.client.ask_all_stacks(slug, job_id)
    if found.ranks == 1:
        dump = _answered(session, slug, job_id, found.dumps[0])
        _finish(output, replace(found, dumps=[dump, *found.dumps[1:]]), dump)
        return
    tell(f"{len(found.asked_together)} nodes have been asked; they answer within seconds.")
    try:
        for _ in range(_TRIES):
            if not _unanswered(found):
                break
            session.client.connection.sleep(_ASK_AGAIN_S)
            found = session.client.stacks(slug, job_id)
    except KeyboardInterrupt:
        click.get_current_context().exit(DETACHED)
    output.one(found, lambda: _show_groups(found))
    if _unanswered(found):
        click.get_current_context().exit(TIMED_OUT)
    if not found.groups:
        click.get_current_context().exit(FAILED_WITHOUT_CODE)


def _unanswered(found: Stacks) -> list[int]:
    return [dump.rank for dump in found.dumps if dump.state == "asked"]


def _show_groups(found: Stacks) -> None:
    for group in found.groups:
        listed = f"  ({rank_ranges(group.ranks)})" if len(group.ranks) > 1 else ""
        say(f"{rank_count(group.ranks)} in {group.where}{listed}")
        for frame in group.frames:
            say(f"    {frame}")
        say("")
    for dump in found.dumps:
        if dump.id in found.asked_together and dump.why:
            complain(f"Node {dump.rank}: {dump.why}")
    if ranks := _unanswered(found):
        complain(f"No answer yet from {rank_count(ranks)}: {rank_ranges(ranks)}; see --list.")


def _answered(session: Session, slug: str, job_id: int, dump: StackDump) -> StackDump:
    """Return the dump once its node has answered, or unanswered after the timeout."""
    tell(f"Node {dump.rank} has been asked; it answers within seconds.")
    try:
        for _ in range(_TRIES):
            if dump.state != "asked":
                break
            session.client.connection.sleep(_ASK_AGAIN_S)
            found = session.client.stacks(slug, job_id, dump=dump.id).dumps
            if not found:
                break
            dump = found[0]
    except KeyboardInterrupt:
        click.get_current_context().exit(DETACHED)
    return dump


def _show(dump: StackDump) -> None:
    for process in dump.processes:
        _show_process(process)
    if dump.left_out:
        tell(f"{dump.left_out} more processes are not listed.")
    if dump.state == "asked":
        complain("No answer yet; see --list.")
    elif dump.why:
        complain(dump.why)


def _show_process(process: ProcessStacks) -> None:
    if process.text:
        say(process.text)
    else:
        say(f"Process {process.pid}: {process.command}")
        say(f"  {process.why}")
    say("")
