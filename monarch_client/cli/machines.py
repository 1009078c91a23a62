"""Commands about machines: clusters that exist, plans of jobs, places where jobs can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monarch_client.cli import completion
from monarch_client.cli.examples import examples
from monarch_client.cli.job_actions import each_of
from monarch_client.cli.options import SPEC_FILE, project_option
from monarch_client.cli.output import Output, age, dollars, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import complain, one_line, say, tell

if TYPE_CHECKING:
    from monarch_client.wire.clusters import Cluster, Infra


def _status(cluster: Cluster) -> str:
    if cluster.idle_since is not None:
        return f"{cluster.status}, idle {age(cluster.idle_since)}"
    return cluster.status


def _whose(cluster: Cluster) -> str:
    if cluster.kind == "row":
        job = f" (job {cluster.job})" if cluster.job else ""
        return f"{cluster.project}{job}"
    return "nobody's" if cluster.kind == "own" else cluster.owner or "a stranger's"


COLUMNS = {
    "NAME": lambda cluster: cluster.name,
    "WHOSE": _whose,
    "STATUS": _status,
    "WHERE": lambda cluster: cluster.infra or cluster.backend,
    "NODES": lambda cluster: cluster.machines,
    "SINCE": lambda cluster: f"{age(cluster.since)} ago",
    "AN HOUR": lambda cluster: dollars(cluster.usd_per_hour),
    "SO FAR": lambda cluster: dollars(cluster.usd),
}


@click.group(invoke_without_command=True)
@project_option
@click.option(
    "--all",
    "-a",
    "is_all",
    is_flag=True,
    help="Of all your projects; for administrators also unknown clusters.",
)
@output_options
@pass_session
@click.pass_context
def clusters(
    context: click.Context,
    session: Session,
    *,
    project: str | None,
    is_all: bool,
    output: Output,
) -> None:
    """List clusters with owner, age and cost."""
    if context.invoked_subcommand is None:
        slug = None if is_all else session.project(project)
        found = session.client.clusters(slug)
        output.rows(
            found,
            COLUMNS,
            key="name",
            least=("SO FAR", "SINCE", "WHERE"),
            empty="No clusters"
            + ("." if is_all else f" in project {slug}. Those of all your projects: -a"),
        )


@clusters.command("extend")
@click.argument("name", shell_complete=completion.clusters)
@click.argument("duration")
@project_option
@pass_session
def clusters_extend(session: Session, *, name: str, duration: str, project: str | None) -> None:
    """Keep an idle cluster for at least DURATION from now, such as 2h or 90m."""
    cluster = session.client.keep(session.project(project), name, duration)
    say(f"{cluster.name}: waits at least {duration} for a job")


@clusters.command("stop")
@click.argument("name", shell_complete=completion.clusters)
@project_option
@pass_session
def clusters_stop(session: Session, *, name: str, project: str | None) -> None:
    """Stop the machines of an idle cluster and keep their disks."""
    cluster = session.client.stop_machines(session.project(project), name)
    say(f"{cluster.name}: stopping; its disks are kept")


@clusters.command("down")
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=completion.clusters
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_session
def clusters_down(session: Session, *, names: tuple[str, ...], yes: bool) -> None:
    """Terminate idle clusters.

    Administrators may name one without a project, if its name is this portal's.
    """
    if not yes:
        question = f"Terminate {', '.join(names)} and delete their disks?"
        click.confirm(question, abort=True, err=True)
    for cluster in each_of(names, session.client.take_down):
        say(f"{cluster.name}: terminating")


@click.command(
    epilog=examples(
        "mportal plan job.yaml",
        "mportal plan job.yaml -o json",
    )
)
@click.argument("file", type=SPEC_FILE)
@project_option
@output_options
@pass_session
def plan(session: Session, *, file: str, project: str | None, output: Output) -> None:
    """Show where a job would run and what it costs. Nothing is uploaded or launched.

    It is `mportal submit --estimate-cost`, also for a file with several documents.
    """
    from monarch_client.cli.sending import estimate_file  # noqa: PLC0415 - 300 ms

    estimate_file(session, file, project=project, output=output)


@click.command()
@output_options
@pass_session
def infra(session: Session, *, output: Output) -> None:
    """List clouds, why some cannot be used, and free GPUs."""
    rows = session.client.infra()
    if output.form == "table" and not output.quiet:
        for place in rows:
            _show_place(place)
    else:
        output.rows(rows, {}, key="backend")


def _show_place(place: Infra) -> None:
    nodes = "" if place.num_nodes is None else f"  {place.num_nodes} nodes, $0"
    say(f"{place.backend}{nodes}")
    for cloud in place.clouds:
        said = "enabled" if cloud.is_enabled else one_line(cloud.reason) or "not enabled"
        say(f"  {cloud.name:<14}{said}")
    for gpu in place.gpus:
        free = f"{gpu.free} of {gpu.total} free on {gpu.nodes} nodes"
        say(f"  {gpu.infra:<14}{gpu.gpu}: {free}")
    for problem in (place.cloud_problem, place.gpu_problem):
        if problem:
            complain(f"{place.backend}: {problem}")
    if place.is_asking and not place.asked_at:
        tell(f"{place.backend} has not answered yet.")
