"""The pages that menus, tabs and the command palette lead to: one list for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from jobs.permissions import VERBS_OF_STATE, Verb, role_allows
from jobs.statuses import ProjectState, Role
from monarch_client.wire import projects as wire


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to a page. `key` is what that page sets as its `nav` or `tab`."""

    key: str
    label: str
    address: str


# View, key, label, and the verb without which the page is not shown.
_Listed = tuple[str, str, str, Verb]

_IN_PROJECT: tuple[_Listed, ...] = (
    ("project", "overview", "Overview", Verb.VIEW_PROJECT),
    ("jobs", "jobs", "Jobs", Verb.VIEW_PROJECT),
    ("queue", "queue", "Queue", Verb.VIEW_PROJECT),
    ("schedules", "schedules", "Schedules", Verb.VIEW_PROJECT),
    ("machines", "machines", "Machines", Verb.VIEW_PROJECT),
    ("usage", "usage", "Usage", Verb.VIEW_PROJECT),
    ("settings", "settings", "Settings", Verb.VIEW_PROJECT),
)
_PROJECT_SETTINGS: tuple[_Listed, ...] = (
    ("settings", "settings", "General", Verb.VIEW_PROJECT),
    ("members", "members", "Members", Verb.VIEW_PROJECT),
    ("secrets", "secrets", "Secrets", Verb.LIST_SECRETS),
    ("budget", "budget", "Budget", Verb.VIEW_PROJECT),
    ("policies", "policies", "Policies", Verb.VIEW_PROJECT),
)
# Pages that others link to with buttons.
_FROM_PAGES: tuple[_Listed, ...] = (
    ("submit", "submit", "Submit a job", Verb.SUBMIT_JOB),
    ("templates", "templates", "Templates", Verb.VIEW_PROJECT),
    ("timeline", "timeline", "Timeline", Verb.VIEW_PROJECT),
    ("edit_template", "new_template", "New template", Verb.MANAGE_TEMPLATES),
    ("new_schedule", "new_schedule", "New schedule", Verb.MANAGE_OWN_SCHEDULES),
)
_ADMINISTRATION = (
    ("users", "users", "Users"),
    ("admin_projects", "projects", "Projects"),
    ("admin_queues", "queues", "Queues"),
    ("admin_pools", "pools", "Pools"),
    ("admin_quotas", "quotas", "Quotas"),
    ("clouds", "clouds", "Clouds"),
)
_EVERYWHERE = (
    ("all_projects", "all_projects", "All projects"),
    ("all_machines", "all_machines", "Machines of all projects"),
)
_ACCOUNT = (
    ("tokens", "tokens", "API tokens"),
    ("sessions", "sessions", "Sessions"),
    ("password", "password", "Password"),
    ("time_settings", "time", "Time zone"),
    ("notifications", "notifications", "Notifications"),
)
_HELP = (
    ("web:whats_new", "whats_new", "What's new"),
    ("api:docs", "api", "API"),
    ("api:job_schema", "job_schema", "Job schema"),
)


def project_pages(project: wire.Project) -> list[PageLink]:
    """Return the pages of a project's menu."""
    return _allowed(_IN_PROJECT, project)


def project_settings(project: wire.Project) -> list[PageLink]:
    """Return the tabs of a project's settings."""
    return _allowed(_PROJECT_SETTINGS, project)


def pages_behind_buttons(project: wire.Project) -> list[PageLink]:
    """Return the pages of a project that other pages lead to."""
    return _allowed(_FROM_PAGES, project)


def administration() -> list[PageLink]:
    """Return the tabs of the administration of the installation."""
    return _linked(_ADMINISTRATION)


def pages_of_all_projects() -> list[PageLink]:
    """Return the pages about all projects of a user."""
    return _linked(_EVERYWHERE)


def account_pages() -> list[PageLink]:
    """Return the pages of a user's own account."""
    return _linked(_ACCOUNT)


def help_pages(docs_url: str) -> list[PageLink]:
    """Return the pages about the portal itself; `docs_url` is "" without documentation."""
    docs = [PageLink("docs", "Documentation", docs_url)] if docs_url else []
    return [*docs, *(PageLink(key, label, reverse(view)) for view, key, label in _HELP)]


def _allowed(listed: tuple[_Listed, ...], project: wire.Project) -> list[PageLink]:
    role, open_verbs = Role(project.role), VERBS_OF_STATE[ProjectState(project.state)]
    return [
        PageLink(key, label, reverse(f"web:{view}", args=[project.slug]))
        for view, key, label, verb in listed
        if verb in open_verbs and role_allows(role, verb)
    ]


def _linked(listed: tuple[tuple[str, str, str], ...]) -> list[PageLink]:
    return [PageLink(key, label, reverse(f"web:{view}")) for view, key, label in listed]
