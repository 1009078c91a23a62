"""The actions of people on schedules: create, change, pause, resume and delete them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from jobs.actions.jobs.submit import check_spec
from jobs.actions.jobs.submit_documents import refuse_several
from jobs.actions.projects.keep_project import lock_project
from jobs.actions.schedules.run_schedule import keep_schedule, owner_of
from jobs.admission.checked_spec import Checked, Source
from jobs.audit.record import record
from jobs.errors import ConflictError, InvalidSpecError
from jobs.ground import clock
from jobs.models import Project, Schedule
from jobs.permissions import Actor, Verb, may, require, require_schedule
from jobs.policies.timetables import Timetable, complaints
from jobs.statuses import CatchUpPolicy, OverlapPolicy
from monarch_client.spec import SpecCode, SpecError
from monarch_client.spec.documents import OF_A_SCHEDULE

MOST_SCHEDULES = 200  # of one project
MOST_IN_A_NAME = 60
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class ScheduleContent:
    """The requested content of a schedule. `source`: the specification; None leaves it as it is."""

    source: Source | None
    cron: str
    zone: str = "UTC"
    overlap: OverlapPolicy = OverlapPolicy.SKIP
    catch_up: CatchUpPolicy = CatchUpPolicy.LATEST


def create_schedule(
    actor: Actor, project: Project, name: str, content: ScheduleContent, *, paused: bool = False
) -> Schedule:
    """Create a schedule of the actor's, whose first time is still to come.

    InvalidSpecError carries all that is wrong with it and its specification in `data["errors"]`.
    ConflictError: there is one of that name, or the project has too many.
    """
    require(actor, Verb.MANAGE_OWN_SCHEDULES, project)
    checked = _checked(actor, project, content, _about_name(name))
    with transaction.atomic():
        # Two at once would both find room.
        lock_project(project, Verb.MANAGE_OWN_SCHEDULES)
        existing = Schedule.objects.filter(project=project)
        if existing.filter(name=name).exists():
            raise ConflictError(f"Project {project.slug} has a schedule {name} already.")
        if existing.count() >= MOST_SCHEDULES:
            message = f"A project has at most {MOST_SCHEDULES} schedules; delete one first."
            raise ConflictError(message)
        schedule = Schedule(project=project, name=name, owner=actor.user, paused=paused)
        if paused:
            schedule.message = _paused_by(actor)
        _take_over(schedule, actor, content, checked)
        schedule.next_at = _next_of(schedule)
        schedule.save()
        record(actor, "create_schedule", schedule, after=_terms(schedule))
    return schedule


def change_schedule(actor: Actor, schedule: Schedule, content: ScheduleContent) -> Schedule:
    """Make it what `content` says. Who changes what it runs becomes its owner.

    InvalidSpecError as in `create_schedule`. Where its times change, it begins anew with the next.
    """
    require_schedule(actor, schedule)
    checked = _checked(actor, schedule.project, content)
    with transaction.atomic():
        keep_schedule(schedule)
        before, times = _terms(schedule), (schedule.cron, schedule.zone)
        _take_over(schedule, actor, content, checked)
        if (schedule.cron, schedule.zone) != times:
            schedule.next_at = _next_of(schedule)
            if not schedule.paused:
                schedule.message = ""  # about times that it had
        _save(schedule)
        record(actor, "change_schedule", schedule, before=before, after=_terms(schedule))
    return schedule


def pause_schedule(actor: Actor, schedule: Schedule) -> Schedule:
    """Have it submit nothing until it is resumed. A second pause changes nothing."""
    require_schedule(actor, schedule)
    with transaction.atomic():
        keep_schedule(schedule)
        if not schedule.paused:
            schedule.paused, schedule.next_at = True, None
            schedule.message = _paused_by(actor)
            _save(schedule)
            _record_pause(actor, "pause_schedule", schedule)
    return schedule


def resume_schedule(actor: Actor, schedule: Schedule) -> Schedule:
    """Let it go on with its next time; what came while it was paused is not caught up.

    Where its owner may not submit any more, it becomes the actor's. InvalidSpecError: its
    specification does not fit any more; ZoneGoneError: nor does its time zone.
    """
    require_schedule(actor, schedule)
    is_orphan = not may(owner_of(schedule), Verb.SUBMIT_JOB, schedule.project)
    if is_orphan:
        check_spec(actor, schedule.project, schedule.spec)
    with transaction.atomic():
        keep_schedule(schedule)
        if schedule.paused:
            if is_orphan:
                schedule.owner = actor.user
            schedule.paused, schedule.message = False, ""
            schedule.next_at = _next_of(schedule)
            _save(schedule)
            _record_pause(actor, "resume_schedule", schedule)
    return schedule


def delete_schedule(actor: Actor, schedule: Schedule) -> None:
    """Remove it. The jobs that it has made stay, and go on."""
    require_schedule(actor, schedule)
    with transaction.atomic():
        keep_schedule(schedule)
        record(actor, "delete_schedule", schedule, before=_terms(schedule))
        schedule.delete()


def _save(schedule: Schedule) -> None:
    schedule.revision += 1
    schedule.updated_at = clock.now()
    schedule.save()


def _take_over(
    schedule: Schedule, actor: Actor, content: ScheduleContent, checked: Checked | None
) -> None:
    """Write `content` into the row's fields."""
    schedule.cron, schedule.zone = content.cron.strip(), content.zone
    schedule.overlap, schedule.catch_up = content.overlap, content.catch_up
    if checked is None or content.source is None:
        return
    source = content.source
    schedule.spec_source = source if isinstance(source, str) else json.dumps(source, indent=2)
    schedule.spec = checked.content
    # It would run in another user's name what they have never seen.
    schedule.owner = actor.user


def _next_of(schedule: Schedule) -> datetime | None:
    if schedule.paused:
        return None
    return Timetable.of(schedule.cron, schedule.zone).next_after(clock.now())


def _paused_by(actor: Actor) -> str:
    return f"Paused by {actor.user.get_username()}."


def _checked(
    actor: Actor, project: Project, content: ScheduleContent, about_name: str = ""
) -> Checked | None:
    """Return the checked specification, if given; InvalidSpecError with everything at once."""
    errors = [_error("schedule.name", about_name)] if about_name else []
    errors += [
        _error(f"schedule.{field}", message)
        for field, message in complaints(content.cron, content.zone)
    ]
    checked = None
    if content.source is not None:
        try:
            refuse_several(content.source, OF_A_SCHEDULE)
            checked = check_spec(actor, project, content.source)
        except InvalidSpecError as error:
            errors += error.data["errors"]
        if checked is not None and checked.spec.portal.array:
            message = "portal.array: A schedule runs one job each time; leave the array out."
            errors.append(_error("portal.array", message))
    if errors:
        raise InvalidSpecError("The schedule has errors.", errors=errors)
    return checked


def _about_name(name: str) -> str:
    if _NAME.fullmatch(name) and len(name) <= MOST_IN_A_NAME:
        return ""
    return (
        "A schedule's name is of small letters, digits, - and _, begins with a letter or digit, "
        f"and has at most {MOST_IN_A_NAME} characters."
    )


def _error(path: str, message: str) -> dict[str, Any]:
    return SpecError(path, None, SpecCode.BAD_VALUE.value, message).to_dict()


def _terms(schedule: Schedule) -> dict[str, Any]:
    """Return what the audit log keeps of a schedule; its specification may hold secrets."""
    names = ("cron", "zone", "overlap", "catch_up", "paused", "revision")
    terms = {name: getattr(schedule, name) for name in names}
    return {**terms, "owner": schedule.owner.get_username()}


def _record_pause(actor: Actor, verb: str, schedule: Schedule) -> None:
    paused = schedule.paused
    record(actor, verb, schedule, before={"paused": not paused}, after={"paused": paused})
