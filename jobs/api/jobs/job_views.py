"""Jobs over REST: list, submit, validate, read, delete, cancel, hold, release, rerun."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.jobs.annotate import label_job, set_note
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.hold import hold_job, release_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.actions.jobs.submit import check_specs
from jobs.actions.jobs.submit_documents import check_documents, submit_document
from jobs.admission.checked_spec import Checked
from jobs.api.base.answers import addressed, answer_with, page_with
from jobs.api.base.authentication import WITH_DRIVERS
from jobs.api.base.inputs import AnnotateBody, JobQuery, RerunBody, SubmitBody
from jobs.api.base.parsers import (
    BoundedJsonParser,
    OldYamlTextParser,
    TextYamlParser,
    YamlTextParser,
)
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.errors import InvalidSpecError
from jobs.permissions import Verb, require
from jobs.readers.job_filter import JobFilter
from jobs.readers.job_page import job_detail, job_now
from jobs.readers.job_pages import JobOrder
from jobs.readers.job_table import job_table
from monarch_client.spec.summary import number_of_jobs, summary_of
from monarch_client.wire.jobs import Job, JobDetail, Validation
from monarch_client.wire.page import Page

MAX_KEY_LENGTH = 255

_SPEC_BODY = {"application/yaml": OpenApiTypes.STR, "application/json": SubmitBody}


class JobView(PortalView):
    """A view whose answer is a job."""

    def answer(self, job_id: int, status: HTTPStatus) -> Response:
        """Return the job as it is now; with CREATED also its address."""
        job = job_now(self.actor, self.kwargs["slug"], job_id)
        place = reverse("api:job", args=[job.project, job.id])
        created = status == HTTPStatus.CREATED
        headers = {"Location": place} if created else None
        return answer_with(addressed(job, self.request), status, headers)


class SpecView(JobView):
    """A view that takes a job specification, as YAML text or inside JSON."""

    parser_classes: Any = (
        BoundedJsonParser,
        YamlTextParser,
        OldYamlTextParser,
        TextYamlParser,
    )

    def source(self) -> str | dict[str, Any]:
        """Return the specification as it was sent."""
        source: str | dict[str, Any] = self.parsed(SubmitBody, self.request.data)["spec"]
        return source


class JobListView(SpecView):
    """`/projects/{slug}/jobs`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="job_list",
        parameters=[JobQuery],
        responses={200: Page[Job], **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the project's jobs, newest first unless `sort` or `pin` says otherwise."""
        query = self.parsed(JobQuery, request.query_params)
        cursor, limit = query.pop("cursor"), query.pop("limit")
        order = JobOrder(query.pop("sort"), pin=query.pop("pin"))
        labels = tuple(word for word in query.pop("label").split(",") if word)
        wanted = JobFilter(**query, labels=labels)
        table = job_table(self.actor, self.project(), wanted, order, cursor=cursor, limit=limit)
        rows = [addressed(row, request) for row in table.rows]
        return page_with(rows, next=table.next, previous=table.previous)

    @extend_schema(
        operation_id="job_submit",
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
                location=OpenApiParameter.HEADER,
                description="The same key and body give the same job again, for 24 hours.",
            )
        ],
        request=_SPEC_BODY,
        responses={201: Job, **problems(400, 401, 403, 404, 413, 415, 422, 507)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Submit a job."""
        job = submit_document(
            self.actor, self.project(), self.source(), idempotency_key=idempotency_key(request)
        )
        return self.answer(job.pk, HTTPStatus.CREATED)


class JobValidateView(SpecView):
    """`/projects/{slug}/jobs/validate`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="job_validate",
        request=_SPEC_BODY,
        responses={200: Validation, **problems(400, 401, 403, 404, 413, 415)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Report every error at once, also of several YAML documents; nothing is stored."""
        checked: list[Checked] = []
        errors: list[Any] = []
        try:
            checked = self._checked()
        except InvalidSpecError as error:
            errors = error.data.get("errors", [])
        specs = [each.spec for each in checked]
        return answer_with(
            Validation(
                valid=bool(checked),
                errors=errors,
                spec=checked[0].content if len(checked) == 1 else None,
                num_jobs=number_of_jobs(specs),
                summary=summary_of(specs) if specs else "",
            )
        )

    def _checked(self) -> list[Checked]:
        project, source = self.project(), self.source()
        if isinstance(source, str):
            return check_documents(self.actor, project, source)
        return check_specs(self.actor, project, [source])


class JobDetailView(JobView):
    """`/projects/{slug}/jobs/{id}`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(operation_id="job_get", responses={200: JobDetail, **problems(401, 404)})
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        """Show one job with its specification."""
        return answer_with(addressed(job_detail(self.actor, slug, job_id), request))

    @extend_schema(
        operation_id="job_annotate",
        request=AnnotateBody,
        responses={200: Job, **problems(400, 401, 403, 404, 415, 422)},
    )
    def patch(self, request: Request, slug: str, job_id: int) -> Response:
        """Change labels of a job, which leaves its others as they are, or its note."""
        job = self.job()
        require(self.actor, Verb.LABEL_JOB, job.project)
        body = self.parsed(AnnotateBody, request.data)
        if "labels" in body:
            label_job(self.actor, job, body["labels"])
        if "note" in body:
            set_note(self.actor, job, body["note"])
        return self.answer(job.pk, HTTPStatus.OK)

    @extend_schema(operation_id="job_delete", responses={204: None, **problems(401, 403, 404, 409)})
    def delete(self, request: Request, slug: str, job_id: int) -> Response:
        """Remove an ended job with its log, attempts and events."""
        delete_job(self.actor, self.job())
        return Response(status=204)


class JobCancelView(JobView):
    """`/projects/{slug}/jobs/{id}/actions/cancel`."""

    authentication_classes: Any = WITH_DRIVERS

    @extend_schema(
        operation_id="job_cancel",
        request=None,
        responses={202: Job, **problems(401, 403, 404, 409)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """End a job. It is over when its status is final."""
        job = cancel_job(self.actor, self.job())
        return self.answer(job.pk, HTTPStatus.ACCEPTED)


class JobHoldView(JobView):
    """`/projects/{slug}/jobs/{id}/actions/hold`."""

    @extend_schema(
        operation_id="job_hold",
        request=None,
        responses={200: Job, **problems(401, 403, 404, 409)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Keep a queued job from starting until it is released."""
        job = hold_job(self.actor, self.job())
        return self.answer(job.pk, HTTPStatus.OK)


class JobReleaseView(JobView):
    """`/projects/{slug}/jobs/{id}/actions/release`."""

    @extend_schema(
        operation_id="job_release",
        request=None,
        responses={200: Job, **problems(401, 403, 404, 409)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Release a held job, so that it may start again."""
        job = release_job(self.actor, self.job())
        return self.answer(job.pk, HTTPStatus.OK)


class JobRerunView(JobView):
    """`/projects/{slug}/jobs/{id}/actions/rerun`."""

    @extend_schema(
        operation_id="job_rerun",
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
                location=OpenApiParameter.HEADER,
                description="The same key gives the same new job again, for 24 hours.",
            )
        ],
        request=RerunBody,
        responses={201: Job, **problems(400, 401, 403, 404, 415, 422, 507)},
    )
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Submit a new job from the same specification."""
        body, key = self.parsed(RerunBody, request.data), idempotency_key(request)
        job = rerun_job(self.actor, self.job(), **body, idempotency_key=key)
        return self.answer(job.pk, HTTPStatus.CREATED)


def idempotency_key(request: Request) -> str | None:
    """Return the header, or None. ValidationError: it is empty, too long or not printable."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (0 < len(key) <= MAX_KEY_LENGTH and key.isprintable()):
        message = f"Give 1 to {MAX_KEY_LENGTH} printable characters."
        raise ValidationError({"Idempotency-Key": message})
    return key
