"""`mportal schedule`: jobs that are submitted again and again, at times that a cron line names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

import click

from monarch_client.cli import completion
from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import BAD_REQUEST
from monarch_client.cli.job_actions import each_of
from monarch_client.cli.options import SPEC_FILE, project_option
from monarch_client.cli.output import Output, local_time, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.spec_text import excerpt, text_from
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import one_line, say, tell
from monarch_client.cli.verb_group import VerbGroup
from monarch_client.errors import InvalidSpecErrors

if TYPE_CHECKING:
    from monarch_client.wire.schedules import Schedule, ScheduleDetail, ScheduleRun

F = TypeVar("F", bound=Callable[..., Any])

MOST_RUNS = 10
# By the path of an error.
_OPTIONS = {"schedule.name": "NAME", "schedule.cron": "--cron", "schedule.zone": "--zone"}


def _when(schedule: Schedule, moment: datetime) -> str:
    """Format a time in the zone of this machine, and in the schedule's if its clock differs."""
    here = moment.astimezone()
    try:
        there = moment.astimezone(ZoneInfo(schedule.zone))
    except (KeyError, OSError, ValueError):  # a zone that this machine does not know
        return local_time(moment)
    if there.utcoffset() == here.utcoffset():
        return local_time(moment)
    day = "" if there.date() == here.date() else f"{there:%Y-%m-%d} "
    return f"{local_time(moment)} ({day}{there:%H:%M} {schedule.zone})"


def _next(schedule: Schedule) -> str:
    if schedule.next_at is None:
        return "paused" if schedule.paused else "never"
    return _when(schedule, schedule.next_at)


def _next_times(schedule: Schedule) -> str:
    return ", ".join(_when(schedule, at) for at in schedule.upcoming) or _next(schedule)


def _outcome(run: ScheduleRun) -> str:
    return f"job {run.job}: {run.job_status}" if run.job else run.outcome


def _last(schedule: Schedule) -> str:
    last = schedule.last
    return "-" if last is None else f"{_when(schedule, last.slot)}, {_outcome(last)}"


COLUMNS = {
    "NAME": lambda schedule: schedule.name,
    "WHEN": lambda schedule: f"{schedule.cron} {schedule.zone}",
    "MEANING": lambda schedule: schedule.meaning,
    "OWNER": lambda schedule: schedule.owner,
    "NEXT": _next,
    "LAST": _last,
    "NOTE": lambda schedule: schedule.message,
}
name_argument = click.argument("name", shell_complete=completion.schedules)
names_argument = click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=completion.schedules
)


def policy_options(command: F) -> F:
    """Give a command --zone, --overlap and --catch-up."""
    zone = click.option("--zone", "-z", help="Such as Europe/Berlin. Default: UTC.")
    overlap = click.option(
        "--overlap", type=click.Choice(["allow", "skip", "replace"]),
        help="If its last job has not ended. Default: skip.",
    )  # fmt: skip
    catch_up = click.option(
        "--catch-up", type=click.Choice(["none", "latest", "all"]),
        help="Times missed while the portal was down. Default: latest.",
    )  # fmt: skip
    return zone(overlap(catch_up(command)))


@click.group(cls=VerbGroup)
def schedule() -> None:
    """Manage schedules."""


@schedule.command(
    "add",
    epilog=examples(
        'mportal schedule add nightly job.yaml -c "30 2 * * 1-5" -z Europe/Berlin',
    ),
)
@click.argument("name")
@click.argument("file", type=SPEC_FILE)
@click.option("--cron", "-c", required=True, help='Such as "30 2 * * 1-5", or @daily.')
@policy_options
@click.option("--paused", is_flag=True, help="Create it paused.")
@project_option
@output_options
@pass_session
def schedule_add(
    session: Session, /, name: str, file: str, project: str | None, output: Output, **options: Any
) -> None:
    """Submit the job in FILE on a schedule; - is standard input. Its `workdir` is uploaded now."""

    def make(slug: str, text: str) -> Schedule:
        given = {key: value for key, value in options.items() if value}
        return session.client.create_schedule(slug, name, text, given.pop("cron"), **given)

    made = _with_file(session, file, project, make)
    output.one(made, lambda: _show_next(made), key="name")


@schedule.command("change")
@name_argument
@click.argument("file", type=SPEC_FILE, required=False)
@click.option("--cron", "-c", help='Such as "30 2 * * 1-5", or @daily.')
@policy_options
@project_option
@output_options
@pass_session
def schedule_change(
    session: Session,
    /,
    name: str,
    file: str | None,
    project: str | None,
    output: Output,
    **options: Any,
) -> None:
    """Change a schedule's times or its job; with FILE it becomes your own."""
    changes = {key: value for key, value in options.items() if value}
    if file is None:
        if not changes:
            raise click.UsageError("Nothing to change: give a FILE or an option.")
        with _explaining():
            slug = session.project(project)
            made: Schedule = session.client.change_schedule(slug, name, **changes)
    else:
        made = _with_file(
            session,
            file,
            project,
            lambda slug, text: session.client.change_schedule(slug, name, spec=text, **changes),
        )
    output.one(made, lambda: _show_next(made), key="name")


@schedule.command("list")
@project_option
@output_options
@pass_session
def schedule_list(session: Session, *, project: str | None, output: Output) -> None:
    """List schedules with their next and last times."""
    found = session.client.schedules(session.project(project))
    output.rows(
        found,
        COLUMNS,
        key="name",
        least=("LAST", "OWNER", "WHEN", "MEANING"),
        empty="No schedules. To add one: mportal schedule add -h",
    )


@schedule.command("show")
@name_argument
@project_option
@output_options
@pass_session
def schedule_show(session: Session, *, name: str, project: str | None, output: Output) -> None:
    """Show a schedule with its next times and the results of the last ones."""
    found = session.client.schedule(session.project(project), name)
    output.one(found, lambda: _show(found), key="name")


@schedule.command("pause")
@names_argument
@project_option
@pass_session
def schedule_pause(session: Session, *, names: tuple[str, ...], project: str | None) -> None:
    """Pause schedules."""
    slug = session.project(project)
    for made in each_of(names, lambda name: session.client.pause_schedule(slug, name)):
        say(f"{made.name}: paused")


@schedule.command("resume")
@names_argument
@project_option
@pass_session
def schedule_resume(session: Session, *, names: tuple[str, ...], project: str | None) -> None:
    """Resume schedules at their next time."""
    slug = session.project(project)
    for made in each_of(names, lambda name: session.client.resume_schedule(slug, name)):
        say(f"{made.name}: next {_next(made)}")


@schedule.command("run")
@name_argument
@project_option
@output_options
@pass_session
def schedule_run(session: Session, *, name: str, project: str | None, output: Output) -> None:
    """Submit a schedule's job now, as its owner, beside running ones."""
    job = session.client.run_schedule(session.project(project), name)
    output.one(job, lambda: say(f"Job {job.id} ({job.name}): {job.url}"))


@schedule.command("rm")
@names_argument
@project_option
@pass_session
def schedule_rm(session: Session, *, names: tuple[str, ...], project: str | None) -> None:
    """Delete schedules. Their jobs stay and continue."""
    slug = session.project(project)

    def remove(name: str) -> str:
        session.client.delete_schedule(slug, name)
        return name

    for name in each_of(names, remove):
        say(f"{name}: removed")


def _with_file(
    session: Session, file: str, project: str | None, send: Callable[[str, str], Schedule]
) -> Schedule:
    """Upload the folders of `file` and call `send` with the project and its text."""
    from monarch_client.cli.folders import Sender  # noqa: PLC0415 - with JobSpec, 100 ms
    from monarch_client.spec import JobSpec  # noqa: PLC0415
    from monarch_client.spec.documents import (  # noqa: PLC0415
        OF_A_SCHEDULE,
        several_documents,
    )

    text = text_from(file)
    base = Path.cwd() if file == "-" else Path(file).parent
    with _explaining(text, file):
        if (several := several_documents(text, OF_A_SCHEDULE)) is not None:
            raise InvalidSpecErrors([several])
        spec = JobSpec.parse(text, admin=True)
        slug = project or spec.portal.project or session.project(None)
        return send(slug, Sender(session.client, slug, base).send_all(text, spec))


@contextmanager
def _explaining(text: str = "", file: str = "") -> Iterator[None]:
    """Print what is wrong by option, or by line of the file, and exit."""
    try:
        yield
    except InvalidSpecErrors as error:
        for each in error.errors:
            option = _OPTIONS.get(each.path)
            tell(f"{option}: {each.message}" if option else excerpt(text, each, file))
        click.get_current_context().exit(BAD_REQUEST)


def _show_next(found: Schedule) -> None:
    if found.meaning:
        say(f"{found.name}: {found.meaning}, {found.zone}")
    say(f"{found.name}: next {_next_times(found)}")
    _show_remarks(found)


def _show_remarks(found: Schedule) -> None:
    for remark in found.remarks:
        say(f"Note: {one_line(remark)}")


def _show(found: ScheduleDetail) -> None:
    say(f"{found.name}: {found.cron} {found.zone}, job {found.job_name} of {found.owner}")
    if found.meaning:
        say(f"{found.meaning}, {found.zone}")
    say(f"Overlap: {found.overlap}. Catch-up: {found.catch_up}.")
    _show_remarks(found)
    if found.message:
        say(one_line(found.message))
    say(f"Next: {_next_times(found)}")
    if found.runs:
        rows = [[_when(found, run.slot), _outcome(run), run.message] for run in found.runs]
        print_table(["TIME", "WHAT", "WHY"], rows[:MOST_RUNS])
