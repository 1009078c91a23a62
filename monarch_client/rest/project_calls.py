"""The endpoints about projects and their members."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page


class ProjectCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def projects(self, *, state: str = "active") -> list[wire.projects.Project]:
        """Return your projects, by slug; `state` is active, archived, or deleted."""
        params = {} if state == "active" else {"state": state}
        answer = self.connection.request("GET", "/projects", params=params)
        return decode_page(wire.projects.Project, answer).results

    def project(self, slug: str) -> wire.projects.ProjectDetail:
        """Return one project, with the number of its jobs by status."""
        return decode(
            wire.projects.ProjectDetail, self.connection.request("GET", f"/projects/{slug}")
        )

    def overview(self, slug: str | None = None) -> wire.overview.Overview:
        """Return the overview of one project, or of all of yours."""
        path = "/overview" if slug is None else f"/projects/{slug}/overview"
        return decode(wire.overview.Overview, self.connection.request("GET", path))

    def make_project(self, slug: str, *, name: str = "") -> wire.projects.Project:
        """Create a project with you as its first admin. ConflictError: the slug is taken."""
        body = {"slug": slug, "name": name}
        return decode(
            wire.projects.Project, self.connection.request("POST", "/projects", json=body)
        )

    def rename_project(
        self, project: str, *, slug: str | None = None, name: str | None = None
    ) -> wire.projects.Project:
        """Give a project another slug or name. ConflictError: taken, or jobs have not ended."""
        given = {"slug": slug, "name": name}
        body = {key: value for key, value in given.items() if value is not None}
        return decode(wire.projects.Project, self._send("PATCH", project, "", json=body))

    def allow_laptops(self, project: str, *, allowed: bool) -> wire.projects.Project:
        """Set whether laptops may attach to jobs of a project that have a driver."""
        body = {"laptops_may_attach": allowed}
        return decode(
            wire.projects.Project, self._send("PATCH", project, "", json=body, repeatable=True)
        )

    def project_limits(self, project: str) -> wire.projects.ProjectLimits:
        """Return the limits of a project, and those that are in force."""
        return decode(wire.projects.ProjectLimits, self._send("GET", project, "/limits"))

    def set_limits(self, project: str, **changes: int | None) -> wire.projects.ProjectLimits:
        """Set `max_duration_s` and `max_idle_minutes`; None takes a limit away."""
        answer = self._send("PUT", project, "/limits", json=changes, repeatable=True)
        return decode(wire.projects.ProjectLimits, answer)

    def archive_project(self, project: str) -> wire.projects.Project:
        """Make a project read-only. ConflictError: it has jobs that have not ended, or clusters."""
        return decode(
            wire.projects.Project, self._send("POST", project, "/actions/archive", repeatable=True)
        )

    def unarchive_project(self, project: str) -> wire.projects.Project:
        """Let a project take jobs again."""
        return decode(
            wire.projects.Project,
            self._send("POST", project, "/actions/unarchive", repeatable=True),
        )

    def delete_project(self, project: str, *, confirm: str) -> None:
        """Delete an archived or empty project for good; `confirm` repeats its slug."""
        self._send("DELETE", project, "", params={"confirm": confirm})

    def members(self, project: str) -> list[wire.projects.Member]:
        """Return the members of a project, by user name."""
        return decode_page(wire.projects.Member, self._send("GET", project, "/members")).results

    def set_member(self, project: str, username: str, role: str) -> wire.projects.Member:
        """Add a user with a role, or give a member another one. ConflictError: the last admin."""
        path, body = _member(username), {"role": role}
        return decode(
            wire.projects.Member, self._send("PUT", project, path, repeatable=True, json=body)
        )

    def remove_member(self, project: str, username: str) -> None:
        """Remove a member. ConflictError: the last admin."""
        self._send("DELETE", project, _member(username))

    def _send(self, method: str, project: str, path: str, **options: Any) -> Any:
        return self.connection.request(method, f"/projects/{project}{path}", **options)


def _member(username: str) -> str:
    return f"/members/{quote(username, safe='')}"
