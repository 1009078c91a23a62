"""/projects/{slug}/uploads: folders as tar.gz, named by their content."""

from __future__ import annotations

import io
import tarfile

import pytest
from django.conf import settings
from django.test import Client

from jobs.models import Upload
from monarch_client.sync.archive import pack
from tests.factories import make_member, make_project
from tests.integration.api.conftest import assert_problem, caller_for

PATH = "/projects/rl/uploads"


@pytest.fixture(autouse=True)
def blobs(settings, tmp_path):
    """Return a blob store for this test only."""
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "blobs"},
        },
    }


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n" * 20_000)
    return pack(folder, tmp_path / "code.tar.gz")


def send(caller, body, kind="application/gzip"):
    return caller.post(PATH, body, content_type=kind)


@pytest.mark.feature("S2.1")
def test_a_folder_is_stored_under_the_name_of_its_content(member, archive):
    response = send(member, archive.path.read_bytes())
    body = response.json()
    assert response.status_code == 201
    assert body["reference"] == archive.reference
    assert (body["file_count"], body["size_bytes"]) == (1, archive.size_bytes)
    assert response["Location"] == f"/api/v1{PATH}/{archive.digest}"
    assert member.get(f"{PATH}/{archive.digest}").json() == body


def test_the_same_content_again_changes_nothing(member, maintainer, archive):
    first = send(member, archive.path.read_bytes()).json()
    assert send(maintainer, archive.path.read_bytes()).json() == first
    assert Upload.objects.count() == 1


def test_a_browser_uploads_with_its_session_and_csrf_token(project, archive):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(make_member(project))
    browser.get("/settings/tokens")
    path, body = f"/api/v1{PATH}", archive.path.read_bytes()
    kind = "application/gzip"
    assert browser.post(path, body, content_type=kind).status_code == 403
    token = {"X-CSRFToken": browser.cookies[settings.CSRF_COOKIE_NAME].value}
    response = browser.post(path, body, content_type=kind, headers=token)
    assert response.json()["reference"] == archive.reference


def test_a_job_may_then_name_it(member, archive):
    send(member, archive.path.read_bytes())
    spec = {"run": "ls", "workdir": archive.reference}
    response = member.post("/projects/rl/jobs", {"spec": spec})
    assert response.status_code == 201


def test_what_one_project_has_another_has_not(member, archive):
    send(member, archive.path.read_bytes())
    other = make_project("other")
    caller = caller_for(member.user)
    caller.user.memberships.create(project=other, role="member")
    response = caller.get(f"/projects/other/uploads/{archive.digest}")
    assert_problem(response, 404, "not_found")


def evil(name="x", kind=tarfile.REGTYPE, target=""):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        tar.addfile(info)
    return file.getvalue()


@pytest.mark.feature("S2.1")
@pytest.mark.parametrize(
    "body",
    [
        b"no archive",
        evil("../out"),
        evil("/etc/passwd"),
        evil("link", tarfile.SYMTYPE, "/etc"),
        evil("link", tarfile.SYMTYPE, "../.."),
        evil("device", tarfile.CHRTYPE),
    ],
    ids=["none", "above", "absolute", "link", "link above", "device"],
)
def test_an_archive_that_reaches_out_is_refused(member, body):
    assert_problem(send(member, body), 422, "invalid_upload")
    assert Upload.objects.count() == 0


def test_an_archive_over_the_limit_is_refused(member, archive, settings):
    settings.MPORTAL_UPLOAD_MAX_BYTES = 100
    assert_problem(send(member, archive.path.read_bytes()), 413, "upload_too_large")


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x", "text/x"])
def test_something_else_than_an_archive_is_refused(member, kind):
    assert_problem(send(member, b"{}", kind), 415, "unsupported_media_type")


@pytest.mark.parametrize("digest", ["x", "A" * 64, "a" * 64])
def test_an_upload_that_is_not_there_is_a_problem(viewer, digest):
    assert_problem(viewer.get(f"{PATH}/{digest}"), 404, "not_found")
