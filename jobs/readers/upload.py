"""One upload of a project, by its digest."""

from __future__ import annotations

from jobs.errors import NotFoundError
from jobs.models import Upload
from jobs.permissions import Actor, project_for


def upload_for(actor: Actor, slug: str, digest: str) -> Upload:
    """The project's upload. NotFoundError, also when only another project has that content."""
    upload = Upload.objects.filter(project=project_for(actor, slug), digest=digest).first()
    if upload is None:
        raise NotFoundError(f"Project {slug} has no upload {digest}.")
    return upload
