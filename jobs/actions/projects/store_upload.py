"""Taking up a folder: streamed to disk, checked, then kept under the name of its content."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage, default_storage
from django.db import transaction

from jobs.actions.projects.keep_project import keep_open
from jobs.audit.record import record
from jobs.errors import InvalidUploadError, UploadTooLargeError
from jobs.ground.disk_space import refused_when_full, require_room
from jobs.models import Project, Upload
from jobs.permissions import Actor, Verb, require
from monarch_client.errors import ArchiveError, ArchiveTooLargeError
from monarch_client.sync import archive

# How much of an upload may arrive between two looks at the room there is.
_LOOK_BYTES = 8 * 1024 * 1024


def store_upload(actor: Actor, project: Project, chunks: Iterable[bytes]) -> Upload:
    """Keep the tar.gz that `chunks` make up, and let `project` use it.

    The same content again is the same upload. InvalidUploadError: it is no archive, or holds what
    it may not. UploadTooLargeError: more than settings.MPORTAL_UPLOAD_MAX_BYTES, or than an
    archive may unpack to; the rest of `chunks` is then not read. StorageFullError: no room for it.
    """
    require(actor, Verb.UPLOAD, project)
    require_room()
    with refused_when_full(), _draft() as draft:
        digest = _receive(draft, chunks)
        facts = _checked(draft)
        upload = Upload(project=project, digest=digest)
        _keep(draft, upload.blob_name)
    with transaction.atomic():
        keep_open(project, Verb.UPLOAD)
        sizes = {"size_bytes": facts.size_bytes, "file_count": facts.file_count}
        upload, is_new = Upload.objects.get_or_create(
            project=project, digest=digest, defaults={**sizes, "created_by": actor.user}
        )
        if is_new:
            record(actor, "upload", upload, after=sizes)
        return upload


@contextmanager
def _draft() -> Iterator[IO[bytes]]:
    """Yield a file beside the blobs, so that a rename makes it one; deleted otherwise."""
    folder = _local_path("uploads")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".draft-", delete=False) as file:
        try:
            yield file
        finally:
            Path(file.name).unlink(missing_ok=True)


def _receive(draft: IO[bytes], chunks: Iterable[bytes]) -> str:
    most: int = settings.MPORTAL_UPLOAD_MAX_BYTES
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise too_large(most)
        digest.update(chunk)
        draft.write(chunk)
        if size // _LOOK_BYTES > (size - len(chunk)) // _LOOK_BYTES:
            require_room()
    draft.flush()
    return digest.hexdigest()


def too_large(most: int) -> UploadTooLargeError:
    """Return the error for an archive of more than `most` bytes."""
    return UploadTooLargeError(
        f"The archive is larger than {most / 1024**2:,.0f} MiB; leave data out with a "
        ".mportalignore file, or keep it in a bucket.",
        limit_bytes=most,
    )


def _checked(draft: IO[bytes]) -> archive.ArchiveFacts:
    try:
        return archive.check(Path(draft.name))
    except ArchiveTooLargeError as error:
        raise UploadTooLargeError(error.message) from error
    except ArchiveError as error:
        raise InvalidUploadError(error.message) from error


def _keep(draft: IO[bytes], blob_name: str) -> None:
    """Make the draft a blob. One of that name has the same content already: it is left alone."""
    place = _local_path(blob_name)
    if default_storage.exists(blob_name):
        if place is not None:
            # An upload without an owner is not taken for a left-over from now on.
            place.touch()
        return
    if place is not None:
        os.fsync(draft.fileno())
        Path(draft.name).replace(place)
        return
    draft.seek(0)
    kept_as = default_storage.save(blob_name, File(draft))
    if kept_as != blob_name:  # another request was quicker, and its copy is as good
        default_storage.delete(kept_as)


def _local_path(name: str) -> Path | None:
    """Return the blob's path on disk; None for a storage such as S3, where a save is atomic."""
    if not isinstance(default_storage, FileSystemStorage):
        return None
    return Path(default_storage.path(name))
