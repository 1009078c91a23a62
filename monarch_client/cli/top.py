"""mportal top: show the load of a job's hosts, and its tasks, now or as last reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import DETACHED, NOTHING_FOUND
from monarch_client.cli.options import job_argument, project_option
from monarch_client.cli.output import Output, age, amount, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.task_tables import show_tasks
from monarch_client.cli.terminal import say, tell
from monarch_client.errors import MissingError

if TYPE_CHECKING:
    from monarch_client.wire.metrics import Host, HostGpu, Hosts
    from monarch_client.wire.tasks import TaskContexts

WATCH_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load of a job: the answers of `GET .../metrics` and `GET .../tasks`."""

    metrics: Hosts
    # None: a portal of an earlier version does not report tasks.
    tasks: TaskContexts | None


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} %"


def _of(used: float | None, total: float | None) -> str:
    return "" if used is None or total is None else f"{amount(used)} of {amount(total)}"


def _rate(count: float | None) -> str:
    return "" if count is None else f"{amount(count)}/s"


def _gpus(host: Host, tell: Callable[[HostGpu], str]) -> str:
    return " ".join(tell(gpu) or "-" for gpu in host.gpus)


def _used_part(gpu: HostGpu) -> str:
    if gpu.memory_used is None or not gpu.memory_total:
        return ""
    return f"{100 * gpu.memory_used / gpu.memory_total:.0f}"


def _heard(host: Host) -> str:
    if host.at is None:
        return "nothing yet"
    return f"silent for {age(host.at)}" if host.is_silent else f"{age(host.at)} ago"


COLUMNS: dict[str, Callable[[Any], str]] = {
    "NODE": lambda host: str(host.rank),
    "MESH": lambda host: host.mesh,
    "CPU": lambda host: _percent(host.cpu),
    "MEMORY": lambda host: _of(host.memory_used, host.memory_total),
    "GPU %": lambda host: _gpus(
        host, lambda gpu: "" if gpu.utilization is None else f"{gpu.utilization:.0f}"
    ),
    "GPU MEMORY %": lambda host: _gpus(host, _used_part),
    "DISK": lambda host: _of(host.disk_used, host.disk_total),
    "IN": lambda host: _rate(host.net_in),
    "OUT": lambda host: _rate(host.net_out),
    "HEARD": _heard,
}


# Left out first on a narrow terminal.
LEAST = ("DISK", "IN", "OUT", "GPU MEMORY %", "MESH", "HEARD")


@click.command(
    epilog=examples(
        "mportal top 42",
        "mportal top ppo -w",
    )
)
@job_argument
@project_option
@click.option("--attempt", "-a", type=click.IntRange(1), help="The attempt; by default the newest.")
@click.option("--watch", "-w", is_flag=True, help="Refresh every 5 s until the job ends.")
@output_options
@pass_session
def top(
    session: Session,
    /,
    job_id: int,
    project: str | None,
    attempt: int | None,
    *,
    watch: bool,
    output: Output,
) -> None:
    """Show the load of a job's hosts, and its tasks.

    The load is CPU, memory, GPUs, disk and network, now or as last reported.
    """
    slug, context = session.project(project), click.get_current_context()
    try:
        while True:
            load = _load(session, slug, job_id, attempt)
            found = load.metrics
            if watch and output.form == "table":
                click.clear()
            _show(load, output)
            if not watch or found.is_final:
                break
            session.client.connection.sleep(WATCH_S)
    except KeyboardInterrupt:
        context.exit(DETACHED)
    if not any(host.at for host in found.hosts):
        context.exit(NOTHING_FOUND)


def _load(session: Session, slug: str, job_id: int, attempt: int | None) -> Load:
    metrics = session.client.metrics(slug, job_id, attempt=attempt)
    try:
        tasks = session.client.tasks(slug, job_id, attempt=attempt)
    except MissingError:
        tasks = None
    return Load(metrics=metrics, tasks=tasks)


def _show(load: Load, output: Output) -> None:
    if output.quiet:
        output.rows(load.metrics.hosts, COLUMNS, key="rank")
    else:
        output.one(load, lambda: _show_tables(load, output))


def _show_tables(load: Load, output: Output) -> None:
    found = load.metrics
    if found.hosts:
        over = ", which is over: as last reported" if found.is_over else ""
        say(f"Attempt {found.attempt}{over}")
        output.rows(found.hosts, COLUMNS, key="rank", least=LEAST)
    else:
        tell("No host has reported yet: the job has not started.")
    if load.tasks is not None:
        show_tasks(load.tasks)
