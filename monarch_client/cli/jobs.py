"""Commands that look at jobs: ps, get, events. `job_actions` has those that change them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.moments import MovingMoment, midnight
from monarch_client.cli.options import job_argument, job_numbers, project_option
from monarch_client.cli.output import Output, age, dollars, duration, local_time, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import one_line, say
from monarch_client.errors import UnknownNameError, UnreachableError
from monarch_client.runner.vocabulary.worker_states import LOST

if TYPE_CHECKING:
    from monarch_client import rest
    from monarch_client.wire.attempts import Attempt, Stage, Worker
    from monarch_client.wire.jobs import Event, Job
    from monarch_client.wire.metrics import GpuUse

# Between two requests of `ps --watch`.
WATCH_S = 2.0
# Of an attempt; the page has them all.
MOST_WORKERS = 50
_TIME = MovingMoment()


def _why(job: Job) -> str:
    if job.status == "SUCCEEDED":
        return ""
    return job.wait_message or job.diagnosis or job.stop_reason


COLUMNS: dict[str, Callable[[Job], str]] = {
    "ID": lambda job: str(job.id),
    "NAME": lambda job: job.name,
    "STATUS": lambda job: job.status,
    "NODES": lambda job: job.machines,
    "USER": lambda job: job.submitted_by,
    "AGE": lambda job: age(job.created_at),
    "WHY": _why,
}


# Left out first on a narrow terminal.
_LEAST = ("GPU USE", "COST", "USER", "AGE", "NODES", "DURATION")
# Options that leave out no job.
_NO_FILTERS = {"limit", "sort", "pin"}


def _columns(jobs: list[Job]) -> dict[str, Callable[[Job], str]]:
    """Return the columns; GPU use, duration and cost only if one of the jobs has them."""
    has_use = any(job.gpu_use is not None for job in jobs)
    has_cost = any(job.usd is not None for job in jobs)
    columns = {}
    for name, show in COLUMNS.items():
        columns[name] = show
        if name == "NODES" and has_use:
            columns["GPU USE"] = lambda job: gpu_use_text(job.gpu_use)
        if name == "AGE" and any(map(_duration, jobs)):
            columns["DURATION"] = _duration
        if name == "AGE" and has_cost:
            columns["COST"] = lambda job: dollars(job.usd)
    return columns


def _duration(job: Job) -> str:
    """Return how long the job has run; empty while it waits."""
    if job.started_at is None or job.status == "QUEUED":
        return ""
    return age(job.started_at, job.ended_at)


def gpu_use_text(use: GpuUse | None) -> str:
    """Return the use of a job's GPUs: `87 %`, or `idle 40 min`; empty if no host reports any."""
    if use is None:
        return ""
    if use.idle_since is not None:
        return f"idle {age(use.idle_since)}"
    value = use.mean if use.now is None else use.now
    return "" if value is None else f"{value:.0f} %"


def _gpu_facts(job: Job) -> str:
    use = job.gpu_use
    if use is None or use.mean is None:
        return ""
    mean = f"mean {use.mean:.0f} %"
    lowest = "" if use.lowest is None else f", lowest host {use.lowest:.0f} %"
    return f"{gpu_use_text(use)}, {mean}{lowest}" if use.now is not None else f"{mean}{lowest}"


def _what(event: Event) -> str:
    moved = f"{event.old_status} -> {event.new_status}" if event.new_status else event.verb
    said = f"{moved}: {event.message}" if event.message else moved
    # The evidence of a failure is many lines, and in the log as well.
    return said.splitlines()[0] if said else event.kind


EVENT_COLUMNS = {
    "WHEN": lambda event: local_time(event.at, seconds=True),
    "WHAT": _what,
    "BY": lambda event: event.actor + (f" from {event.source}" if event.source else ""),
}


@click.command(
    epilog=examples(
        "mportal ps -s RUNNING,QUEUED -u me",
        "mportal ps --since 24h --reason OOM",
        "mportal ps -l team=rl --sort -cost -n 50",
        "mportal ps -q -s QUEUED | xargs mportal hold",
    )
)
@project_option
@click.option("--status", "-s", default="", help="Such as RUNNING,QUEUED.")
@click.option("--user", "-u", default="", help='A user name, or "me".')
@click.option("--name", default="", help="Exactly this name.")
@click.option("--parent", metavar="JOB", help="Jobs that this job's program submitted.")
@click.option("--gpu", default="", help="GPUs of this type, such as H100.")
@click.option("--queue", default="", help="In this queue.")
@click.option("--backend", default="", help="On this backend.")
@click.option("--reason", default="", help="Why they wait or ended, such as OOM.")
@click.option("--label", "-l", multiple=True, help="team=rl, or team with any value.")
@click.option(
    "--since", type=_TIME, default="", help="Submitted since this time, or this long ago: 24h."
)
@click.option("--until", type=_TIME, default="", help="Submitted before this time, or so long ago.")
@click.option("--search", "q", default="", help="Part of a name, or an id.")
@click.option("--sort", default="", help="Such as name, -duration or -cost; a minus reverses it.")
@click.option("--view", default="", help="The filters and order of this saved view.")
@click.option("--pin", is_flag=True, default=None, help="Unfinished jobs first.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, 200),
    default=20,
    show_default=True,
    help="The most jobs to list.",
)
@click.option("--watch", "-w", is_flag=True, help="Show changes until Ctrl-C.")
@output_options
@pass_session
def ps(
    session: Session,
    /,
    project: str | None,
    output: Output,
    view: str,
    *,
    watch: bool,
    **filters: Any,
) -> None:
    """List jobs, newest first."""
    filters["label"], filters["reason"] = ",".join(filters["label"]), filters["reason"].upper()
    filters["status"] = tuple(filters["status"].upper().split(",")) if filters["status"] else ()
    if filters["parent"]:
        project, [filters["parent"]] = job_numbers(session, project, [filters["parent"]])
    slug = session.project(project)
    if view:
        filters = {**view_filters(session, slug, view), **{k: v for k, v in filters.items() if v}}
    if not watch:
        jobs = session.client.jobs(slug, **filters).results
        output.rows(jobs, _columns(jobs), least=_LEAST, empty=_no_jobs(slug, filters))
        return
    if output != Output():
        raise click.UsageError("--watch prints a table: omit -o and -q.")
    with suppress(KeyboardInterrupt):
        _watch(session.client, slug, filters)


def _no_jobs(project: str, filters: dict[str, Any]) -> str:
    """Return the remark for a list without jobs."""
    is_narrowed = any(value for name, value in filters.items() if name not in _NO_FILTERS)
    if is_narrowed:
        return f"No such jobs in project {project}. All: mportal ps --project {project}"
    return f"No jobs in project {project}. To submit one: mportal submit -f job.yaml"


def _watch(client: rest.PortalClient, project: str, filters: dict[str, Any]) -> None:
    """Print the table of jobs again whenever it changes."""
    shown: list[list[str]] | None = None
    while True:
        try:
            jobs = client.jobs(project, **filters).results
        except UnreachableError:
            # Later, the client has reported that the portal is away, and it may come back.
            if shown is None:
                raise
        else:
            columns = _columns(jobs)
            rows = [[show(job) for show in columns.values()] for job in jobs]
            if rows != shown:
                click.clear()
                Output().rows(jobs, columns, least=_LEAST, empty=_no_jobs(project, filters))
            shown = rows
        client.connection.sleep(WATCH_S)


def view_filters(session: Session, project: str, name: str) -> dict[str, Any]:
    """Return the filters of the saved view `name`; a private view hides shared ones."""
    found = [view for view in session.client.views(project) if view.name == name]
    if not found:
        raise UnknownNameError(f"There is no view {name!r}; `mportal view list` shows them.")
    own = [view for view in found if not view.is_shared] or found
    filters: dict[str, Any] = dict(parse_qsl(own[0].query))
    filters["status"] = tuple(filters.get("status", "").split(","))
    if since := midnight(filters.pop("from", "")):
        filters["since"] = since
    if until := midnight(filters.pop("to", ""), days_later=1):
        filters["until"] = until
    return filters


@click.command()
@job_argument
@project_option
@click.option("--all", "show_all", is_flag=True, help="Every worker of every attempt.")
@output_options
@pass_session
def get(
    session: Session, job_id: int, project: str | None, *, show_all: bool, output: Output
) -> None:
    """Show one job with its stages and workers."""
    slug = session.project(project)
    job = session.client.job(slug, job_id)

    def show() -> None:
        wanted = "all" if show_all else "newest"
        attempts = session.client.attempts(slug, job_id, workers=wanted)
        _show_job(job, attempts, most_workers=sys.maxsize if show_all else MOST_WORKERS)
        if len(attempts) > 1 and not show_all:
            say("\nThe workers of earlier attempts: --all lists them.")

    output.one(job, show)


@click.command()
@job_argument
@project_option
@output_options
@pass_session
def events(session: Session, job_id: int, project: str | None, output: Output) -> None:
    """Show a job's history, oldest first, with times and users."""
    slug = session.project(project)
    rows: list[Event] = []
    after: int | str | None = 0
    while after is not None:
        page = session.client.events(slug, job_id, after=after)
        rows += page.results
        after = page.next
    output.rows(rows, EVENT_COLUMNS)


def _show_job(job: Job, attempts: list[Attempt], most_workers: int) -> None:
    facts = {
        "Job": f"{job.id} ({job.name})",
        "Status": job.status,
        "Why": _why(job),
        "Message": job.message,
        "What to do": job.hint,
        "Exit code": "" if job.exit_code is None else str(job.exit_code),
        "Nodes": f"{job.machines} on {job.backend}",
        "GPU use": _gpu_facts(job),
        "Cost": dollars(job.usd),
        "Duration": _duration(job),
        "Submitted": f"{age(job.created_at)} ago by {job.submitted_by}",
        "Rerun of": str(job.rerun_of or ""),
        "Parent": str(job.parent or ""),
        "Schedule": job.schedule,
        "Labels": ", ".join(f"{name}={value}" for name, value in job.labels.items()),
        "Note": job.note,
        "Page": job.url,
    }
    for name, value in facts.items():
        if value:
            say(f"{name:<12}{one_line(value)}")
    for attempt in attempts:
        _show_attempt(attempt, said_of_the_job=(job.message, job.wait_message))
        _show_workers(attempt.workers, most_workers)


def _show_attempt(attempt: Attempt, said_of_the_job: tuple[str, ...]) -> None:
    why = "" if attempt.message in said_of_the_job else one_line(attempt.message)
    say(f"\nAttempt {attempt.number}  {attempt.stop_reason}  {why}".rstrip())
    machines = (attempt.infra, attempt.resources, dollars(attempt.usd))
    if any(machines):
        say("  " + ", ".join(each for each in machines if each))
    if attempt.diagnosis is not None:
        say(f"  Diagnosis   {one_line(attempt.diagnosis.title)}")
        say(f"  Evidence    {one_line(attempt.diagnosis.evidence)}")
        say(f"  Fix         {one_line(attempt.diagnosis.fix)}")
    for stage in attempt.stages:
        took = "" if stage.duration_s is None else duration(stage.duration_s)
        said = one_line(_said_of(stage, known=(*said_of_the_job, attempt.message)))
        say(f"  {stage.label:<18}{stage.state:<8}{took:>8}  {said}".rstrip())


def _show_workers(workers: list[Worker], most: int) -> None:
    """Print at most `most` workers, of more only the lost, failed and silent ones if any."""
    if not workers:
        return
    unwell = [each for each in workers if _is_unwell(each)]
    shown = workers if len(workers) <= most else (unwell or workers)[:most]
    say()
    print_table(
        ["NODE", "MESH", "STATUS", "LAST LINE", "ADDRESS", "EXIT", "DETAIL"],
        [
            [str(w.rank), w.mesh, w.status, _last_line(w), w.address, _code(w.exit_code), _note(w)]
            for w in shown
        ],
    )
    for worker in shown:
        if worker.ssh:
            say(f"  node {worker.rank}: {worker.ssh}")
    if len(shown) < len(workers):
        counts = Counter(each.status for each in workers)
        totals = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        left = len(workers) - len(shown)
        say(f"  and {left} more; {len(workers)} in all: {totals}. --all lists them.")


def _is_unwell(worker: Worker) -> bool:
    has_failed = bool(worker.exit_code) and worker.ended_after is None
    return worker.status == LOST or has_failed or worker.is_silent


def _note(worker: Worker) -> str:
    if worker.ended_after is None:
        return worker.detail
    return f"ended by the portal after node {worker.ended_after} failed"


def _last_line(worker: Worker) -> str:
    """Return the age of a worker's last line, marked if most others write much more often."""
    if worker.last_line_at is None:
        return "SILENT" if worker.is_silent else ""
    return f"{age(worker.last_line_at)} ago{' SILENT' if worker.is_silent else ''}"


def _said_of(stage: Stage, known: tuple[str, ...]) -> str:
    """Return the text of a stage that is not in `known` already."""
    if stage.state == "stopped":
        return ""
    return stage.detail if not stage.failure or stage.failure in known else stage.failure


def _code(code: int | None) -> str:
    return "" if code is None else str(code)
