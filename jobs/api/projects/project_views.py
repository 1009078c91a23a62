"""REST views of projects: list, create, rename, archive and delete."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.change_project import change_project
from jobs.actions.projects.close_projects import archive_project, delete_project, unarchive_project
from jobs.actions.projects.make_project import make_project
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.projects.project_inputs import (
    ProjectBody,
    ProjectChanges,
    ProjectDeleteQuery,
    ProjectListQuery,
)
from jobs.models import Project
from jobs.permissions import Verb, require, require_sharing
from jobs.readers.project_list import project_detail, project_list, project_view
from jobs.statuses import ProjectState
from monarch_client.wire import projects as wire
from monarch_client.wire.page import Page


class ProjectListView(PortalView):
    """`/projects`."""

    tag = "projects"

    @extend_schema(
        operation_id="project_list",
        parameters=[ProjectListQuery],
        responses={200: Page[wire.Project], **problems(400, 401)},
    )
    def get(self, request: Request) -> Response:
        """List the caller's projects, by slug; archived ones if requested."""
        query = self.parsed(ProjectListQuery, request.query_params)
        found = project_list(self.actor, ProjectState(query["state"]))
        return page_with(found)

    @extend_schema(
        operation_id="project_make",
        request=ProjectBody,
        responses={201: wire.Project, **problems(400, 401, 403, 409, 415, 422)},
    )
    def post(self, request: Request) -> Response:
        """Make a project, with the caller as its first admin. For administrators."""
        require_sharing(self.actor)
        body = self.parsed(ProjectBody, request.data)
        made = make_project(self.actor, body["slug"], body["name"])
        return answer_with(project_view(self.actor, made), 201)


class ProjectView(PortalView):
    """A view of one project."""

    tag = "projects"

    def answer(self, project: Project) -> Response:
        """Return the project as it is now."""
        return answer_with(project_view(self.actor, project))


class ProjectDetailView(ProjectView):
    """`/projects/{slug}`."""

    @extend_schema(
        operation_id="project_get",
        responses={200: wire.ProjectDetail, **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Show one project, with the number of its jobs by status."""
        return answer_with(project_detail(self.actor, self.project()))

    @extend_schema(
        operation_id="project_rename",
        request=ProjectChanges,
        responses={200: wire.Project, **problems(400, 401, 403, 404, 409, 413, 415, 422)},
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Rename it, or set whether laptops may attach to its jobs. Takes the role admin.

        The old slug answers until another project takes it.
        """
        project = self.project()
        require(self.actor, Verb.MANAGE_PROJECT, project)
        body = self.parsed(ProjectChanges, request.data)
        return self.answer(change_project(self.actor, project, **body))

    @extend_schema(
        operation_id="project_delete",
        parameters=[ProjectDeleteQuery],
        responses={204: None, **problems(400, 401, 403, 404, 409, 422)},
    )
    def delete(self, request: Request, slug: str) -> Response:
        """Delete an archived or empty project for good. Takes the role admin."""
        project = self.project()
        query = self.parsed(ProjectDeleteQuery, request.query_params)
        delete_project(self.actor, project, query["confirm"])
        return Response(status=204)


class ProjectArchiveView(ProjectView):
    """`/projects/{slug}/actions/archive`."""

    @extend_schema(
        operation_id="project_archive",
        request=None,
        responses={200: wire.Project, **problems(401, 403, 404, 409)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Make it read-only and pause its schedules. Takes the role admin."""
        return self.answer(archive_project(self.actor, self.project()))


class ProjectUnarchiveView(ProjectView):
    """`/projects/{slug}/actions/unarchive`."""

    @extend_schema(
        operation_id="project_unarchive",
        request=None,
        responses={200: wire.Project, **problems(401, 403, 404)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Let it take jobs again; its schedules stay paused. Takes the role admin."""
        return self.answer(unarchive_project(self.actor, self.project()))
