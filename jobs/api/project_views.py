"""Who the caller is, and the projects they can see."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects import make_project
from jobs.api.base import PortalView
from jobs.api.schema import page_of, problems
from jobs.api.serializers import (
    MeSerializer,
    ProjectBody,
    ProjectDetailSerializer,
    ProjectSerializer,
)
from jobs.permissions import require_sharing, role_in
from jobs.readers.job_table import status_counts
from jobs.readers.project_list import project_list


class MeView(PortalView):
    """`/me`."""

    tag = "account"

    @extend_schema(operation_id="me", responses={200: MeSerializer, **problems(401)})
    def get(self, request: Request) -> Response:
        """The user behind the token or session, and their projects."""
        actor = self.actor
        body = {
            "username": actor.user.get_username(),
            "is_admin": actor.is_installation_admin,
            "token": actor.token.name if actor.token else None,
            "read_only": bool(actor.token and actor.token.read_only),
            "projects": project_list(actor),
        }
        return Response(MeSerializer(body).data)


class ProjectListView(PortalView):
    """`/projects`."""

    tag = "projects"

    @extend_schema(
        operation_id="project_list",
        responses={200: page_of(ProjectSerializer), **problems(401)},
    )
    def get(self, request: Request) -> Response:
        """The caller's projects, by slug."""
        rows = ProjectSerializer(project_list(self.actor), many=True).data
        return Response({"results": rows, "next": None, "previous": None})

    @extend_schema(
        operation_id="project_make",
        request=ProjectBody,
        responses={201: ProjectSerializer, **problems(400, 401, 403, 409, 415, 422)},
    )
    def post(self, request: Request) -> Response:
        """Make a project, with the caller as its first admin. For administrators."""
        require_sharing(self.actor)
        body = self.parsed(ProjectBody, request.data)
        made = make_project(self.actor, body["slug"], body["name"])
        row = next(each for each in project_list(self.actor) if each.slug == made.slug)
        return Response(ProjectSerializer(row).data, status=201)


class ProjectDetailView(PortalView):
    """`/projects/{slug}`."""

    tag = "projects"

    @extend_schema(
        operation_id="project_get",
        responses={200: ProjectDetailSerializer, **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """One project, with the number of its jobs by status."""
        project = self.project()
        body = {
            "slug": project.slug,
            "name": project.name,
            "role": role_in(self.actor, project),
            "job_counts": status_counts(self.actor, project),
        }
        return Response(ProjectDetailSerializer(body).data)
