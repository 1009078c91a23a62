"""Store the folders that users upload: kept under the name of their content."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from jobs.actions.projects.keep_archive import keep_archive
from jobs.actions.projects.keep_project import keep_open
from jobs.audit.record import record
from jobs.models import Project, Upload
from jobs.permissions import Actor, Verb, require


def store_upload(actor: Actor, project: Project, chunks: Iterable[bytes]) -> Upload:
    """Keep the tar.gz that `chunks` make up, and let `project` use it.

    The same content again is the same upload. Errors: see `keep_archive`.
    """
    require(actor, Verb.UPLOAD, project)
    facts = keep_archive(chunks)
    with transaction.atomic():
        keep_open(project, Verb.UPLOAD)
        sizes = {"size_bytes": facts.size_bytes, "file_count": facts.file_count}
        upload, is_new = Upload.objects.get_or_create(
            project=project, digest=facts.digest, defaults={**sizes, "created_by": actor.user}
        )
        if is_new:
            record(actor, "upload", upload, after=sizes)
        return upload
