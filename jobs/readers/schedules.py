"""The schedules of a project: when each runs, what became of its last time, and which come next."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from jobs.errors import NotFoundError
from jobs.ground import clock
from jobs.models import Project, Schedule, ScheduleRun
from jobs.permissions import Actor, Verb, require, verbs_of
from jobs.policies.cron_meaning import meaning_of
from jobs.policies.schedules import upcoming
from jobs.policies.timetables import Timetable, about_zone, complaints, remarks, zones
from jobs.readers.extended import extended
from jobs.statuses import JobStatus, ScheduleOutcome
from monarch_client.wire import schedules as wire

MOST_UPCOMING = 3
MOST_RUNS = 50


@dataclass(frozen=True, slots=True)
class Preview:
    """A cron expression in a zone before there is a schedule: its meaning, or its problem.

    `problem_field`: the one of the two with the problem, cron or zone.
    """

    problem_field: str = ""
    problem: str = ""
    meaning: str = ""
    remarks: list[str] = field(default_factory=list)
    upcoming: list[datetime] = field(default_factory=list)


def schedule_list(actor: Actor, project: Project) -> list[wire.Schedule]:
    """List the schedules by name."""
    require(actor, Verb.VIEW_PROJECT, project)
    rows = list(Schedule.objects.filter(project=project).select_related("owner").order_by("name"))
    return _views(actor, project, rows)


def schedule_named(actor: Actor, project: Project, name: str) -> Schedule:
    """Return the project's schedule of that name. NotFoundError: there is none."""
    require(actor, Verb.VIEW_PROJECT, project)
    rows = Schedule.objects.select_related("owner", "project")
    schedule = rows.filter(project=project, name=name).first()
    if schedule is None:
        raise NotFoundError(f"There is no schedule {name} in project {project.slug}.")
    return schedule


def schedule_page(actor: Actor, schedule: Schedule) -> wire.ScheduleDetail:
    """Return one schedule with its specification, next times and runs."""
    (view,) = _views(actor, schedule.project, [schedule])
    runs = schedule.runs.select_related("job").order_by("-slot")[:MOST_RUNS]
    return extended(
        wire.ScheduleDetail,
        view,
        spec_source=schedule.spec_source,
        runs=[_run_view(run) for run in runs],
    )


def cron_meaning(cron: str, *, has_half_days: bool) -> str:
    """Return the meaning of a valid cron expression for a reader with 12 or 24 hours."""
    return meaning_of(cron, has_half_days=has_half_days)


def preview(cron: str, zone: str, *, has_half_days: bool = False) -> Preview:
    """Return what a schedule with these two would do, or what is wrong with them."""
    if not cron.strip():
        return Preview()
    if found := complaints(cron, zone):
        wrong, problem = found[0]
        return Preview(problem_field=wrong, problem=problem)
    times = upcoming(Timetable.of(cron, zone), clock.now(), MOST_UPCOMING)
    meaning = cron_meaning(cron, has_half_days=has_half_days)
    return Preview(meaning=meaning, remarks=remarks(cron), upcoming=times)


def _times(schedule: Schedule) -> list[datetime]:
    """Return the next times; none of a paused schedule, or whose zone does not exist any more."""
    if schedule.paused or about_zone(schedule.zone):
        return []
    timetable = Timetable.of(schedule.cron, schedule.zone)
    return upcoming(timetable, clock.now(), MOST_UPCOMING)


def zone_names() -> list[str]:
    """List every zone by its name, without those that are old names of others."""
    return sorted(name for name in zones() if "/" in name or name == "UTC")


def _views(actor: Actor, project: Project, rows: list[Schedule]) -> list[wire.Schedule]:
    verbs = verbs_of(actor, project)
    newest = ScheduleRun.objects.filter(schedule__in=rows).order_by("schedule_id", "-slot")
    newest = newest.distinct("schedule_id")
    last = {run.schedule_id: run for run in newest.select_related("job")}
    jobs = dict(newest.exclude(job=None).values_list("schedule_id", "job_id"))
    return [
        wire.Schedule(
            name=row.name,
            project=project.slug,
            job_name=str(row.spec.get("name", "")),
            cron=row.cron,
            meaning=meaning_of(row.cron),
            remarks=remarks(row.cron),
            zone=row.zone,
            overlap=row.overlap,
            catch_up=row.catch_up,
            owner=row.owner.get_username(),
            paused=row.paused,
            message=_message(row),
            next_at=row.next_at,
            upcoming=_times(row),
            last=_run_view(last[row.pk]) if row.pk in last else None,
            last_job=jobs.get(row.pk),
            created_at=row.created_at,
            updated_at=row.updated_at,
            can_manage=_manages(actor, row, verbs),
        )
        for row in rows
    ]


def _message(schedule: Schedule) -> str:
    """Return the stored message, and a missing zone also before the schedule's next time."""
    problem = about_zone(schedule.zone)
    if problem in schedule.message:
        return schedule.message
    return f"{schedule.message} {problem}".lstrip()


def _manages(actor: Actor, row: Schedule, verbs: frozenset[Verb]) -> bool:
    """Whether `require_schedule` lets the actor manage the schedule."""
    own = row.owner_id == actor.user.pk
    return (Verb.MANAGE_OWN_SCHEDULES if own else Verb.MANAGE_SCHEDULES) in verbs


def _run_view(run: ScheduleRun) -> wire.ScheduleRun:
    return wire.ScheduleRun(
        slot=run.slot,
        is_manual=run.is_manual,
        outcome=run.outcome,
        outcome_label=ScheduleOutcome(run.outcome).label,
        message=run.message,
        job=run.job.pk if run.job else None,
        job_status=run.job.status if run.job else "",
        job_status_label=JobStatus(run.job.status).label if run.job else "",
    )
