"""Schedules over REST: made, read, changed, paused, resumed, run, deleted."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.schedules.edit_schedules import (
    ScheduleContent,
    change_schedule,
    create_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
)
from jobs.actions.schedules.run_schedule import run_now
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.flag_field import FlagField
from jobs.api.base.inputs import SpecField
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.text_field import TextField
from jobs.api.jobs.job_views import JobView
from jobs.models import Schedule
from jobs.permissions import Verb, require, require_schedule
from jobs.readers.schedules import (
    schedule_list,
    schedule_named,
    schedule_page,
)
from jobs.statuses import CatchUpPolicy, OverlapPolicy
from monarch_client.wire import schedules as wire
from monarch_client.wire.jobs import Job
from monarch_client.wire.page import Page


class ScheduleChanges(serializers.Serializer[Any]):
    """The changes to a schedule; an omitted field stays as it is."""

    spec = SpecField(required=False)
    cron = TextField(required=False, help_text="Five fields, or such as @daily.")
    zone = TextField(required=False, help_text="Such as UTC or Europe/Berlin.")
    overlap = ChoiceField(choices=OverlapPolicy.choices, required=False)
    catch_up = ChoiceField(choices=CatchUpPolicy.choices, required=False)


class ScheduleBody(ScheduleChanges):
    """A schedule to make. Without more it is read in UTC, skips and catches up the latest."""

    name = TextField()
    spec = SpecField()
    cron = TextField(help_text="Five fields, or such as @daily.")
    paused = FlagField(required=False, default=False)


class ScheduleView(PortalView):
    """A view of schedules."""

    tag = "schedules"

    def schedule(self) -> Schedule:
        """Return the schedule in the address. NotFoundError if the actor may not see it."""
        return schedule_named(self.actor, self.project(), self.kwargs["schedule_name"])

    def answer(self, schedule: Schedule, status: HTTPStatus = HTTPStatus.OK) -> Response:
        """Return the whole schedule as it is now."""
        return answer_with(schedule_page(self.actor, schedule), status)


class ScheduleListView(ScheduleView):
    """`/projects/{slug}/schedules`."""

    @extend_schema(
        operation_id="schedule_list",
        responses={200: Page[wire.Schedule], **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the project's schedules, by name."""
        rows = schedule_list(self.actor, self.project())
        return page_with(rows)

    @extend_schema(
        operation_id="schedule_create",
        request=ScheduleBody,
        responses={
            201: wire.ScheduleDetail,
            **problems(400, 401, 403, 404, 409, 413, 415, 422),
        },
    )
    def post(self, request: Request, slug: str) -> Response:
        """Create a schedule of your own. All of its errors are reported at once."""
        project = self.project()
        require(self.actor, Verb.MANAGE_OWN_SCHEDULES, project)
        body = self.parsed(ScheduleBody, request.data)
        name, paused = body.pop("name"), body.pop("paused")
        content = ScheduleContent(source=body.pop("spec"), **body)
        schedule = create_schedule(self.actor, project, name, content, paused=paused)
        return self.answer(schedule, HTTPStatus.CREATED)


class ScheduleDetailView(ScheduleView):
    """`/projects/{slug}/schedules/{name}`."""

    @extend_schema(
        operation_id="schedule_get",
        responses={200: wire.ScheduleDetail, **problems(401, 404)},
    )
    def get(self, request: Request, slug: str, schedule_name: str) -> Response:
        """Show one schedule, with its specification, its next times and its last fifty."""
        return self.answer(self.schedule())

    @extend_schema(
        operation_id="schedule_change",
        request=ScheduleChanges,
        responses={200: wire.ScheduleDetail, **problems(400, 401, 403, 404, 413, 415, 422)},
    )
    def patch(self, request: Request, slug: str, schedule_name: str) -> Response:
        """Change it. Who changes what it runs becomes its owner."""
        schedule = self.schedule()
        require_schedule(self.actor, schedule)
        body = self.parsed(ScheduleChanges, request.data)
        now = {key: getattr(schedule, key) for key in ("cron", "zone", "overlap", "catch_up")}
        content = ScheduleContent(source=body.pop("spec", None), **{**now, **body})
        return self.answer(change_schedule(self.actor, schedule, content))

    @extend_schema(operation_id="schedule_delete", responses={204: None, **problems(401, 403, 404)})
    def delete(self, request: Request, slug: str, schedule_name: str) -> Response:
        """Remove it. The jobs that it has made stay, and go on."""
        delete_schedule(self.actor, self.schedule())
        return Response(status=204)


class SchedulePauseView(ScheduleView):
    """`/projects/{slug}/schedules/{name}/actions/pause`."""

    @extend_schema(
        operation_id="schedule_pause",
        request=None,
        responses={200: wire.ScheduleDetail, **problems(401, 403, 404)},
    )
    def post(self, request: Request, slug: str, schedule_name: str) -> Response:
        """Have it submit nothing until it is resumed."""
        return self.answer(pause_schedule(self.actor, self.schedule()))


class ScheduleResumeView(ScheduleView):
    """`/projects/{slug}/schedules/{name}/actions/resume`."""

    @extend_schema(
        operation_id="schedule_resume",
        request=None,
        responses={200: wire.ScheduleDetail, **problems(401, 403, 404, 422)},
    )
    def post(self, request: Request, slug: str, schedule_name: str) -> Response:
        """Let it go on with its next time."""
        return self.answer(resume_schedule(self.actor, self.schedule()))


class ScheduleRunView(JobView):
    """`/projects/{slug}/schedules/{name}/actions/run`."""

    tag = "schedules"

    @extend_schema(
        operation_id="schedule_run",
        request=None,
        responses={201: Job, **problems(401, 403, 404, 409, 422, 507)},
    )
    def post(self, request: Request, slug: str, schedule_name: str) -> Response:
        """Submit its job at once, in its owner's name; the answer is the job."""
        schedule = schedule_named(self.actor, self.project(), schedule_name)
        return self.answer(run_now(self.actor, schedule).pk, HTTPStatus.CREATED)
