"""Keep the archives of folders as blobs: streamed to disk, checked, named by their content."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage, default_storage

from jobs.errors import InvalidUploadError, UploadTooLargeError
from jobs.ground.disk_space import refused_when_full, require_room
from jobs.models.upload import blob_name_of
from monarch_client.errors import ArchiveError, ArchiveTooLargeError
from monarch_client.sync import archive

# How much of an archive may arrive between two checks of the free space.
_LOOK_BYTES = 8 * 1024 * 1024


def keep_archive(chunks: Iterable[bytes]) -> archive.ArchiveFacts:
    """Keep the tar.gz that `chunks` make up as a blob, and return the facts about it.

    InvalidUploadError: it is no archive, or holds what it may not. UploadTooLargeError: more than
    settings.MPORTAL_UPLOAD_MAX_BYTES, or than an archive may unpack to; the rest of `chunks` is
    then not read. StorageFullError: no room for it.
    """
    require_room()
    with refused_when_full(), _draft() as draft:
        _receive(draft, chunks)
        facts = _checked(draft)
        _keep(draft, blob_name_of(facts.digest))
        return facts


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


def _receive(draft: IO[bytes], chunks: Iterable[bytes]) -> None:
    most: int = settings.MPORTAL_UPLOAD_MAX_BYTES
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise too_large(most)
        draft.write(chunk)
        if size // _LOOK_BYTES > (size - len(chunk)) // _LOOK_BYTES:
            require_room()
    draft.flush()


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
