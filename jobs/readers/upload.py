"""One upload of a project, by its digest."""

from __future__ import annotations

from jobs.errors import NotFoundError
from jobs.models import Upload
from jobs.permissions import Actor, project_for
from monarch_client.wire import jobs as wire


def upload_for(actor: Actor, slug: str, digest: str) -> wire.Upload:
    """Return the project's upload. NotFoundError: at most another project has that content."""
    upload = Upload.objects.filter(project=project_for(actor, slug), digest=digest).first()
    if upload is None:
        raise NotFoundError(f"Project {slug} has no upload {digest}.")
    return upload_view(upload)


def upload_view(upload: Upload) -> wire.Upload:
    """Return an upload as REST answers it."""
    return wire.Upload(
        reference=upload.reference,
        digest=upload.digest,
        size_bytes=upload.size_bytes,
        file_count=upload.file_count,
        created_at=upload.created_at,
    )
