"""Uploads of folders: checked, stored once by content, owned by a project."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from django.core.files.storage import InMemoryStorage, default_storage

from jobs.actions.projects import keep_archive as module
from jobs.actions.projects.store_upload import store_upload
from jobs.errors import InvalidUploadError, PermissionDeniedError, UploadTooLargeError
from jobs.models import Upload
from jobs.statuses import Role
from monarch_client.errors import ArchiveTooLargeError
from tests.factories import make_actor, make_project
from tests.unit.sync.archives import link, member, tar_gz

pytestmark = pytest.mark.django_db

ARCHIVE = tar_gz(member("train.py", b"print('hello')\n"), member("README", b"x" * 9999)).getvalue()
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()
UNSAFE = {
    "nothing": b"",
    "no archive": b"no archive",
    "torn": ARCHIVE[:-9],
    "climbing": tar_gz(member("../x")).getvalue(),
    "linked": tar_gz(link("x", "/etc/passwd")).getvalue(),
}


@pytest.fixture(autouse=True)
def blobs(settings, tmp_path) -> Path:
    """Return the folder where the blobs of this test are stored."""
    settings.MEDIA_ROOT = tmp_path / "blobs"
    return settings.MEDIA_ROOT


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def actor(project):
    return make_actor(project, Role.MEMBER)


def in_chunks(content: bytes, size: int = 100):
    return (content[start : start + size] for start in range(0, len(content), size))


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_an_archive_is_kept_by_its_content(actor, project):
    upload = store_upload(actor, project, in_chunks(ARCHIVE))
    assert upload.reference == f"upload:{DIGEST}"
    assert (upload.size_bytes, upload.file_count) == (len(ARCHIVE), 2)
    assert upload.created_by == actor.user
    with default_storage.open(upload.blob_name) as blob:
        assert blob.read() == ARCHIVE


def test_the_same_content_again_changes_nothing(actor, project, blobs):
    first = store_upload(actor, project, in_chunks(ARCHIVE))
    again = store_upload(actor, project, in_chunks(ARCHIVE, 7))
    assert first == again
    assert files_in(blobs) == [f"{DIGEST}.tar.gz"]


def test_two_projects_share_the_blob_but_not_the_row(actor, project, blobs):
    other = make_project()
    store_upload(actor, project, [ARCHIVE])
    store_upload(make_actor(other), other, [ARCHIVE])
    assert Upload.objects.filter(digest=DIGEST).count() == 2
    assert files_in(blobs) == [f"{DIGEST}.tar.gz"]


def test_too_many_bytes_are_refused_before_they_are_read(actor, project, blobs, settings):
    settings.MPORTAL_UPLOAD_MAX_BYTES = 1000
    endless = iter(lambda: b"x" * 400, None)
    with pytest.raises(UploadTooLargeError) as caught:
        store_upload(actor, project, endless)
    assert caught.value.data == {"limit_bytes": 1000}
    assert files_in(blobs) == []


def test_content_that_unpacks_to_too_much_is_refused(actor, project, blobs, monkeypatch):
    def too_large(_):
        raise ArchiveTooLargeError

    monkeypatch.setattr(module.archive, "check", too_large)
    with pytest.raises(UploadTooLargeError):
        store_upload(actor, project, [ARCHIVE])
    assert files_in(blobs) == []


@pytest.mark.feature("S2.1")
@pytest.mark.parametrize("name", UNSAFE)
def test_what_is_no_safe_archive_leaves_nothing_behind(actor, project, blobs, name):
    with pytest.raises(InvalidUploadError):
        store_upload(actor, project, [UNSAFE[name]])
    assert files_in(blobs) == []
    assert not Upload.objects.exists()


def test_a_sender_that_breaks_off_leaves_nothing_behind(actor, project, blobs):
    def broken():
        yield ARCHIVE[:50]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store_upload(actor, project, broken())
    assert files_in(blobs) == []


def test_a_viewer_may_not_upload(project, blobs):
    with pytest.raises(PermissionDeniedError):
        store_upload(make_actor(project, Role.VIEWER), project, [ARCHIVE])
    assert not blobs.exists()


def test_a_storage_without_paths_keeps_the_blob_as_well(actor, project, monkeypatch):
    storage = InMemoryStorage()
    monkeypatch.setattr(module, "default_storage", storage)
    upload = store_upload(actor, project, in_chunks(ARCHIVE))
    store_upload(actor, project, in_chunks(ARCHIVE))
    assert storage.open(upload.blob_name).read() == ARCHIVE
    assert storage.listdir("uploads") == ([], [f"{DIGEST}.tar.gz"])
