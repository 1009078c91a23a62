"""The submission of a schedule's job: because its time has come, or on request.

A time that is due is taken, its row written and its job queued in one transaction, guarded by what
the schedule was when it was read: a second process, or one that dies, leaves all as it was.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from jobs.actions.jobs.cancel import end_job
from jobs.actions.jobs.create_jobs import create_jobs
from jobs.actions.jobs.draft_jobs import Draft, draft_jobs, terms_of
from jobs.actions.jobs.submit import check_specs
from jobs.audit.record import record
from jobs.errors import (
    BackendError,
    ConflictError,
    InvalidSpecError,
    NotFoundError,
    PermissionDeniedError,
    StaleJobError,
    StorageFullError,
)
from jobs.ground import clock
from jobs.ground.disk_space import require_room
from jobs.models import Job, Schedule, ScheduleRun
from jobs.permissions import Actor, require_schedule
from jobs.policies.schedules import Missed, Turn, turn_of
from jobs.policies.timetables import Timetable, ZoneGoneError, zone_named
from jobs.statuses import (
    CatchUpPolicy,
    JobStatus,
    OverlapPolicy,
    ScheduleOutcome,
    StopReason,
)
from monarch_client.crash_points import reach

log = logging.getLogger(__name__)


def run_due(schedule_id: int) -> bool:
    """Deal with one time that is due, if there is one; whether to look again at once.

    Where the portal itself is not able to submit now, or to compute the times, the time stays due.
    """
    now = clock.now()
    due = Schedule.objects.due(now).select_related("project", "owner")
    schedule = due.filter(pk=schedule_id).first()
    if schedule is None or schedule.next_at is None:
        return False
    timetable = Timetable.of(schedule.cron, schedule.zone)
    try:
        turn = turn_of(timetable, schedule.next_at, now, CatchUpPolicy(schedule.catch_up))
        return turn is not None and _take_turn(schedule, turn)
    except StaleJobError:
        # A job that was to be replaced moved on meanwhile.
        return True
    except (StorageFullError, BackendError, ZoneGoneError) as error:
        message = f"Waits: {error.message}"
        if _as_read(schedule).exclude(message=message).update(message=message):
            context = {"action": "schedule_waits", "schedule": schedule.pk}
            log.warning("schedule %s: %s", schedule.name, message, extra=context)
        return False


def run_now(actor: Actor, schedule: Schedule) -> Job:
    """Submit the schedule's job at once, paused or not, beside whatever it has made before.

    InvalidSpecError when the spec no longer fits. ConflictError when the owner, in whose name it
    runs, may not submit it any more.
    """
    require_schedule(actor, schedule)
    require_room()
    try:
        draft = _drafted(schedule)
    except PermissionDeniedError as error:
        message = f"{_orphaned(schedule)} Pause it and resume it: then you are its owner."
        raise ConflictError(message) from error
    message = f"Submitted by schedule {schedule.name}, run by {actor.user.get_username()}"
    with transaction.atomic():
        keep_schedule(schedule)
        job = _create(schedule, draft, message)
        ScheduleRun.objects.create(
            schedule=schedule,
            slot=clock.now(),
            is_manual=True,
            outcome=ScheduleOutcome.SUBMITTED,
            message=f"Run by {actor.user.get_username()}.",
            job=job,
        )
        record(actor, "run_schedule", schedule, after={"job": job.pk})
    return job


def keep_schedule(schedule: Schedule) -> None:
    """Read the schedule again, and lock it against changes until this transaction ends.

    NotFoundError: it has been deleted.
    """
    rows = Schedule.objects.select_for_update(no_key=True)
    try:
        schedule.refresh_from_db(from_queryset=rows)
    except Schedule.DoesNotExist as error:
        raise NotFoundError(f"There is no schedule {schedule.name} any more.") from error


def owner_of(schedule: Schedule) -> Actor:
    """Return the owner as the submitter: with all current permissions of the owner, and no more."""
    return Actor(schedule.owner, source=f"schedule {schedule.name}")


def _drafted(schedule: Schedule) -> Draft:
    owner = owner_of(schedule)
    [checked] = check_specs(owner, schedule.project, [schedule.spec])
    return draft_jobs(owner, schedule.project, replace(checked, source=schedule.spec_source))


def _create(schedule: Schedule, draft: Draft, message: str) -> Job:
    [job] = create_jobs(owner_of(schedule), [draft], message=message)
    return job


def _take_turn(schedule: Schedule, turn: Turn) -> bool:
    if turn.slot is None:
        with transaction.atomic():
            return _take(schedule, turn)
    require_room()
    try:
        draft = _drafted(schedule)
    except InvalidSpecError as error:
        return _fail(schedule, turn, turn.slot, _first_of(error))
    except PermissionDeniedError:
        why = f"Paused. {_orphaned(schedule)} Who resumes it becomes its owner."
        return _fail(schedule, turn, turn.slot, why, paused=True)
    reach("schedule.due")
    with transaction.atomic():
        if not _take(schedule, turn):
            return False
        _run(schedule, turn.slot, draft)
        reach("schedule.stored")
    return True


def _take(schedule: Schedule, turn: Turn, *, message: str = "", paused: bool = False) -> bool:
    """Claim the turn for this transaction, with what was missed; False: it is already claimed."""
    next_at = None if paused else turn.next_at
    if not _as_read(schedule).update(next_at=next_at, message=message, paused=paused):
        return False
    if turn.missed is not None:
        _note(schedule, turn.missed.first, ScheduleOutcome.MISSED, _about(schedule, turn.missed))
    return True


def _as_read(schedule: Schedule) -> QuerySet[Schedule]:
    """Return the row, if neither a person nor another turn has changed it."""
    return Schedule.objects.filter(
        pk=schedule.pk, revision=schedule.revision, next_at=schedule.next_at
    )


def _run(schedule: Schedule, slot: datetime, draft: Draft) -> None:
    """Submit the job of `slot`, as the schedule's overlap policy says."""
    if schedule.runs.filter(slot=slot).exists():
        return
    unfinished = Job.objects.unfinished().filter(schedule_run__schedule=schedule).order_by("pk")
    before = list(unfinished)
    when = shown(slot, schedule.zone)
    if before and schedule.overlap == OverlapPolicy.SKIP:
        why = f"Job {before[0].pk} had not ended ({before[0].status})."
        _note(schedule, slot, ScheduleOutcome.SKIPPED, why)
        return
    if schedule.overlap == OverlapPolicy.REPLACE:
        for job in before:
            # A preempted job would be queued again.
            if job.status != JobStatus.STOPPING or job.stop_reason == StopReason.PREEMPTED:
                why = f"Replaced: schedule {schedule.name} runs again, for {when}."
                end_job(owner_of(schedule), job, why)
    message = f"Submitted by schedule {schedule.name}, for {when}"
    job = _create(schedule, draft, message)
    record(owner_of(schedule), "submit", job, after=terms_of(job))
    _note(schedule, slot, ScheduleOutcome.SUBMITTED, job=job)


def _fail(
    schedule: Schedule, turn: Turn, slot: datetime, why: str, *, paused: bool = False
) -> bool:
    with transaction.atomic():
        if not _take(schedule, turn, message=why, paused=paused):
            return False
        _note(schedule, slot, ScheduleOutcome.FAILED, why)
    context = {"action": "schedule_failed", "schedule": schedule.pk}
    log.warning("schedule %s: %s", schedule.name, why, extra=context)
    return True


def _note(
    schedule: Schedule,
    slot: datetime,
    outcome: ScheduleOutcome,
    message: str = "",
    job: Job | None = None,
) -> None:
    """Write the one row of a time. A time that recurs after the clock was set has one already."""
    fields = {"outcome": outcome, "message": message, "job": job}
    ScheduleRun.objects.get_or_create(schedule=schedule, slot=slot, defaults=fields)


def _orphaned(schedule: Schedule) -> str:
    owner, project = schedule.owner.get_username(), schedule.project.slug
    return f"Its owner {owner} may not submit jobs in project {project} any more."


def _about(schedule: Schedule, missed: Missed) -> str:
    until = shown(missed.last, schedule.zone)
    last = "" if missed.count == 1 else f", the last time for {until}"
    return f"Missed {missed.how_many}{last}: the portal was not there in time."


def _first_of(error: InvalidSpecError) -> str:
    errors = error.data.get("errors", [])
    if not errors:
        return error.message
    more = f" And {len(errors) - 1} more." if len(errors) > 1 else ""
    return f"Its job can't be submitted: {errors[0]['message']}{more}"


def shown(moment: datetime, zone: str) -> str:
    """Format a time in the schedule's zone."""
    return f"{moment.astimezone(zone_named(zone)):%Y-%m-%d %H:%M} {zone}"
