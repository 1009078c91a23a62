"""The secrets of a project: their names, and who set them when. Never what they are."""

from __future__ import annotations

from jobs.models import Project, ProjectSecret
from jobs.permissions import Actor, Verb, require
from monarch_client.wire.projects import Secret


def secret_list(actor: Actor, project: Project) -> list[Secret]:
    """List the secrets by name."""
    require(actor, Verb.LIST_SECRETS, project)
    rows = project.secrets.select_related("created_by", "updated_by").defer("ciphertext")
    return [secret_view(row) for row in rows.order_by("name")]


def secret_view(row: ProjectSecret) -> Secret:
    """Return the secret as lists show it."""
    return Secret(
        name=row.name,
        created_at=row.created_at,
        created_by=row.created_by.get_username() if row.created_by else "",
        updated_at=row.updated_at,
        updated_by=row.updated_by.get_username() if row.updated_by else "",
        is_masked=row.is_masked,
    )
