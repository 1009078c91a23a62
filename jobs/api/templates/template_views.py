"""Templates over REST: listed, read, saved, deleted, filled in and run."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.templates.run_template import fill_in, run_template
from jobs.actions.templates.save_template import delete_template, save_template
from jobs.api.base.answers import addressed, answer_with, page_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.text_field import TextField
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.api.jobs.job_views import MAX_KEY_LENGTH, idempotency_key
from jobs.models import Project
from jobs.permissions import Verb, require
from jobs.readers.job_table import rows_of
from jobs.readers.templates import found_template, template_list, template_page
from monarch_client.wire import templates as wire
from monarch_client.wire.jobs import Batch
from monarch_client.wire.page import Page

_MOST_VERSION = 2**31 - 1


class VersionQuery(serializers.Serializer[Any]):
    """The version of a template; the newest else."""

    version = WholeNumberField(
        required=False, allow_null=True, default=None, min_value=1, max_value=_MOST_VERSION
    )


class TemplateBody(serializers.Serializer[Any]):
    """A template to save."""

    source = TextField(  # type: ignore[assignment]
        trim_whitespace=False,
        max_length=256 * 1024,
        help_text="Its header and specification, separated by a line of ---.",
    )


@extend_schema_field({"type": "object", "additionalProperties": True})
class ValuesField(serializers.Field[Any, Any, Any, Any]):
    """Values by the names of parameters; the template decides whether they fit."""

    # Doubled braces: REST framework formats its messages.
    default_error_messages = {"invalid": 'Give an object such as {{"nodes": 2}}.'}  # noqa: RUF012

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return an object unchanged; everything else is an error."""
        if not isinstance(data, dict):
            self.fail("invalid")
        return dict(data)

    def to_representation(self, value: Any) -> Any:
        """Return the values unchanged."""
        return value


class ValuesBody(VersionQuery):
    """Values for the parameters of a template; those with defaults may be left out."""

    values = ValuesField(required=False, default=dict)


class TemplateView(PortalView):
    """A view of templates of a project."""

    tag = "templates"

    def owner(self) -> Project | None:
        """Return the project in the address."""
        return self.project()

    def list_of(self) -> Response:
        """Return the templates that can be used there."""
        return page_with(template_list(self.actor, self.owner()))

    def shown(self, name: str) -> Response:
        """Return one template with its text, parameters and versions."""
        number = self.parsed(VersionQuery, self.request.query_params)["version"]
        return answer_with(template_page(self.actor, self.owner(), name, number))

    def saved(self, name: str) -> Response:
        """Store the text of the body and return the template."""
        owner = self.owner()
        source = self.parsed(TemplateBody, self.request.data)["source"]
        row = save_template(self.actor, owner, source, name=name)
        return answer_with(template_page(self.actor, owner, row.name, row.number))

    def deleted(self, name: str) -> Response:
        """Delete all versions of the template."""
        delete_template(self.actor, self.owner(), name)
        return Response(status=204)


class TemplateListView(TemplateView):
    """`/projects/{slug}/templates`."""

    @extend_schema(
        operation_id="template_list",
        responses={200: Page[wire.Template], **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the templates that the project can use, by name."""
        return self.list_of()


class TemplateDetailView(TemplateView):
    """`/projects/{slug}/templates/{name}`."""

    @extend_schema(
        operation_id="template_get",
        parameters=[VersionQuery],
        responses={200: wire.TemplateDetail, **problems(400, 401, 404)},
    )
    def get(self, request: Request, slug: str, template_name: str) -> Response:
        """Show one template with its text and the JSON Schema of its parameters."""
        return self.shown(template_name)

    @extend_schema(
        operation_id="template_save",
        request=TemplateBody,
        responses={
            200: wire.TemplateDetail,
            **problems(400, 401, 403, 404, 409, 413, 415, 422),
        },
    )
    def put(self, request: Request, slug: str, template_name: str) -> Response:
        """Save a version of a template in the project. Requires the role maintainer."""
        require(self.actor, Verb.MANAGE_TEMPLATES, self.project())
        return self.saved(template_name)

    @extend_schema(operation_id="template_delete", responses={204: None, **problems(401, 403, 404)})
    def delete(self, request: Request, slug: str, template_name: str) -> Response:
        """Delete all versions of a template of the project. Jobs made from it stay."""
        return self.deleted(template_name)


class TemplateFillView(TemplateView):
    """`/projects/{slug}/templates/{name}/actions/fill-in`."""

    @extend_schema(
        operation_id="template_fill_in",
        request=ValuesBody,
        responses={200: wire.FilledTemplate, **problems(400, 401, 404, 413, 415, 422)},
    )
    def post(self, request: Request, slug: str, template_name: str) -> Response:
        """Return the specification that the values make; nothing is stored."""
        body = self.parsed(ValuesBody, request.data)
        found = found_template(self.actor, self.project(), template_name, body["version"])
        return answer_with(wire.FilledTemplate(spec=fill_in(found, body["values"])))


class TemplateRunView(TemplateView):
    """`/projects/{slug}/templates/{name}/actions/run`."""

    @extend_schema(
        operation_id="template_run",
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
                location=OpenApiParameter.HEADER,
                description="The same key and values give the same jobs again, for 24 hours.",
            )
        ],
        request=ValuesBody,
        responses={201: Batch, **problems(400, 401, 403, 404, 409, 413, 415, 422, 507)},
    )
    def post(self, request: Request, slug: str, template_name: str) -> Response:
        """Submit the jobs that the template and the values make."""
        project = self.project()
        require(self.actor, Verb.SUBMIT_JOB, project)
        body = self.parsed(ValuesBody, request.data)
        jobs = run_template(
            self.actor,
            project,
            template_name,
            body["values"],
            number=body["version"],
            idempotency_key=idempotency_key(request),
        )
        rows = rows_of(self.actor, project, jobs)
        return answer_with(
            Batch(results=[addressed(row, request) for row in rows]), HTTPStatus.CREATED
        )


class SharedTemplateView(TemplateView):
    """A view of templates of all projects."""

    def owner(self) -> Project | None:
        """Return no project."""
        return None


class SharedTemplateListView(SharedTemplateView):
    """`/templates`."""

    @extend_schema(
        operation_id="shared_template_list",
        responses={200: Page[wire.Template], **problems(401)},
    )
    def get(self, request: Request) -> Response:
        """List the templates of all projects, by name; built-in ones are among them."""
        return self.list_of()


class SharedTemplateDetailView(SharedTemplateView):
    """`/templates/{name}`."""

    @extend_schema(
        operation_id="shared_template_get",
        parameters=[VersionQuery],
        responses={200: wire.TemplateDetail, **problems(400, 401, 404)},
    )
    def get(self, request: Request, template_name: str) -> Response:
        """Show one template of all projects."""
        return self.shown(template_name)

    @extend_schema(
        operation_id="shared_template_save",
        request=TemplateBody,
        responses={200: wire.TemplateDetail, **problems(400, 401, 403, 404, 409, 413, 415, 422)},
    )
    def put(self, request: Request, template_name: str) -> Response:
        """Save a version of a template for all projects, as an administrator."""
        return self.saved(template_name)

    @extend_schema(
        operation_id="shared_template_delete", responses={204: None, **problems(401, 403, 404)}
    )
    def delete(self, request: Request, template_name: str) -> Response:
        """Delete a template of all projects, as an administrator."""
        return self.deleted(template_name)
