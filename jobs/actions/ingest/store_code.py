"""Store the code that programs have synchronized to a job, so that its next attempt starts with it.

The head node sends it with the attempt's token; it is checked like any other upload.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.core.files.storage import default_storage
from django.db import transaction

from jobs.actions.projects.keep_archive import keep_archive
from jobs.actions.projects.sweep_uploads import delete_unowned, lock_content
from jobs.errors import AttemptClosedError, InvalidUploadError, PortalBusyError
from jobs.ground import clock
from jobs.logs.senders import sender_of
from jobs.models import Attempt, JobCode
from jobs.models.upload import blob_name_of

_TREE = re.compile(r"[0-9a-f]{64}")


def store_code(attempt_id: int, token: str, tree: str, chunks: Iterable[bytes]) -> JobCode:
    """Keep the tar.gz that `chunks` make up as the code of the attempt's job.

    The archive that it replaces is deleted. `tree` is the name of the generation. Errors: see
    `sender_of` and `keep_archive`; PortalBusyError: the same content was deleted meanwhile.
    """
    sender = sender_of(attempt_id, token)
    if not _TREE.fullmatch(tree):
        raise InvalidUploadError("The name of a generation has 64 hexadecimal digits.")
    facts = keep_archive(chunks)
    with transaction.atomic():
        lock_content(facts.digest)
        if not default_storage.exists(blob_name_of(facts.digest)):
            raise PortalBusyError
        # Of two attempts the newer one counts: the older one has ended meanwhile.
        attempt = Attempt.objects.select_for_update(no_key=True).get(pk=attempt_id)
        if attempt.ended_at is not None:
            raise AttemptClosedError
        # An attempt may still fetch what it started with; what it stored itself, nobody fetches.
        former = JobCode.objects.filter(job_id=sender.job_id, attempt_number=attempt.number).first()
        code, _ = JobCode.objects.update_or_create(
            job_id=sender.job_id,
            defaults={
                "digest": facts.digest,
                "tree": tree,
                "size_bytes": facts.size_bytes,
                "file_count": facts.file_count,
                "attempt_number": attempt.number,
                "stored_at": clock.now(),
            },
        )
    if former is not None and former.digest != code.digest:
        delete_unowned(former.digest)
    return code
