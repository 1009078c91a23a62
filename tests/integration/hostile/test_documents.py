"""Specifications and folders that are meant to hurt: through REST, the page and the client."""

from __future__ import annotations

import gzip
import json
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.models import Job, Upload
from jobs.statuses import Role
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec import JobSpec
from monarch_client.sync import archive
from monarch_client.sync.archive import Limits
from tests.factories import make_member, make_project
from tests.integration.api.conftest import Caller, caller_for
from tests.unit.sync.archives import folder, link, member, tar_gz, zipped

pytestmark = pytest.mark.django_db

MIB = 1024**2
BOMB = "run: x\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
DOCUMENTS = {
    "aliases that multiply": BOMB,
    "an anchor in itself": "run: &a [*a]",
    "deep lists": "[" * 200_000,
    "deep mappings": "a: " + "{a: " * 100_000,
    "deep blocks": "- " * 200_000,
    "a huge scalar": "run: " + "x" * 900_000,
    "a huge key": "x" * 900_000 + ": 1",
    "many keys": "".join(f"k{n}: 1\n" for n in range(60_000)),
    "many envs": "run: x\nenvs:\n" + "".join(f"  K{n}: v\n" for n in range(50_000)),
    "the same key twice": "run: a\nrun: b",
    "the same key without end": "run: a\n" * 100_000,
    "a merge": "a: &a {b: 1}\nrun: {<<: *a}",
    "a Python object": "run: !!python/object/apply:os.system [id]",
    "a Python name": "run: !!python/name:os.system ",
    "a tag": "run: !secret x",
    "a giant number": "run: x\nnum_nodes: " + "9" * 100_000,
    "a giant float": "run: x\nnum_nodes: 1e999999",
    "a giant octal": "run: x\nnum_nodes: 0o" + "7" * 20_000,
    "a number in base sixty": "run: x\nnum_nodes: " + "1:" * 20_000 + "1",
    "a date": "run: x\nname: 2001-12-14t21:59:43.10-05:00",
    "a zero byte": "run: x\0",
    "a backspace": "run: x\b",
    "another document, which is none": "run: x\n---\nrun: [",
    "comments without end": "# x\n" * 150_000,
    "quotes that never close": 'run: "' + "\\u0041" * 150_000,
    "flow without end": "a: [" + "{a: b}, " * 100_000 + "]",
}


@contextmanager
def bounded(*, cpu_s: float = 8.0, memory: int = 160 * MIB) -> Iterator[None]:
    """Assert that the block takes little of this process's time and memory."""
    tracemalloc.start()
    began = time.process_time()
    yield
    spent, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert spent < cpu_s, spent
    assert peak < memory, peak


@pytest.fixture(autouse=True)
def surroundings(settings: Any, tmp_path: Path, monkeypatch: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "blobs"
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


@pytest.fixture
def caller() -> Caller:
    return caller_for(make_member(make_project("rl"), Role.MEMBER))


@pytest.fixture
def browser(caller: Caller) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(caller.user)
    return client


def refused_by_rest(caller: Caller, text: str) -> list[int]:
    jobs = "/projects/rl/jobs"
    as_json = json.dumps({"spec": text}).encode()
    return [
        caller.post(jobs, text.encode(), content_type="application/yaml").status_code,
        caller.post(jobs, as_json).status_code,
    ]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_hostile_document_is_refused_by_every_way_in(name, caller, browser) -> None:
    text = DOCUMENTS[name]
    with bounded():
        assert set(refused_by_rest(caller, text)) <= {400, 413, 422}
        page = browser.post("/rl/jobs/new", {"source": text})
        assert page.status_code in {400, 422}
        assert len(page.content) < 3 * MIB
        with pytest.raises(InvalidSpecErrors):
            JobSpec.parse(text)
    assert not Job.objects.exists()


def test_a_document_of_four_megabytes_is_refused_by_every_way_in(caller, browser) -> None:
    text = "run: |\n" + "  x\n" * MIB
    with bounded():
        assert refused_by_rest(caller, text) == [413, 413]
        assert browser.post("/rl/jobs/new", {"source": text}).status_code == 400
        with pytest.raises(InvalidSpecErrors):
            JobSpec.parse(text)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"spec": ' + b"[" * 400_000,
        b'{"spec": ' + b'{"a":' * 150_000,
        b'{"spec": {"num_nodes": ' + b"9" * 500_000 + b"}}",
        b'{"spec": {"num_nodes": 1e999}}',
        b'{"spec": {"num_nodes": NaN, "run": "x"}}',
        b'{"spec": {"run": "\\ud800"}}',
        b'{"spec": {"run": "\\u0000"}}',
        b'{"spec": {"\\u0000": "x"}}',
        b'{"spec": "run: x", "spec": 5}',
        b'{"spec": null}',
        b"null",
        b"[]",
        b'"spec"',
        b"5",
        b"\xff\xfe{}",
        b'{"spec": {' + b",".join(b'"k%d": 1' % n for n in range(60_000)) + b"}}",
    ],
)
def test_hostile_json_is_refused(caller: Caller, raw: bytes) -> None:
    with bounded():
        answer = caller.post("/projects/rl/jobs", raw)
    assert answer.status_code in {400, 413, 422}
    assert answer["Content-Type"] == "application/problem+json"
    assert len(answer.content) < 2 * MIB


def test_the_answer_to_a_wrong_document_is_not_many_times_as_long(caller: Caller) -> None:
    text = "run: x\n" + "".join(f"k{n}: 1\n" for n in range(5_000))
    answer = caller.post("/projects/rl/jobs", text.encode(), content_type="application/yaml")
    assert answer.status_code == 422
    assert len(answer.content) < 100 * len(text)


def packed(*members: Any, **options: Any) -> Callable[[], bytes]:
    return lambda: tar_gz(*members, **options).getvalue()


def sparse() -> bytes:
    """Build what GNU tar calls a sparse file: a terabyte of nothing."""
    info = tarfile.TarInfo("x")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % (8**10)
    return zipped(bytes(header)).getvalue()


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "a name that climbs": packed(member("../../x")),
    "an absolute name": packed(member("/etc/cron.d/x")),
    "a link out": packed(link("x", "../../../etc/passwd")),
    "a file behind a link": packed(link("x", "/tmp"), member("x/y")),
    "a hard link out": packed(member("y", type=tarfile.LNKTYPE, linkname="/etc/shadow")),
    "a device": packed(member("x", type=tarfile.CHRTYPE)),
    "a pipe": packed(member("x", type=tarfile.FIFOTYPE)),
    "a line break in a name": packed(member("a\nb")),
    "half a character in a name": packed(member("a\udcffb")),
    "a path in a PAX header": packed(
        (tarfile.TarInfo("ok"), b""), format=tarfile.PAX_FORMAT, pax_headers={"path": "/etc/x"}
    ),
    "a sparse file": sparse,
    "a torn archive": lambda: tar_gz(member("x", bytes(range(256)) * 99)).getvalue()[:-30],
    "no archive": lambda: b"PK\x03\x04 a zip, perhaps",
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_hostile_folder_is_refused_over_rest_and_nothing_is_kept(name, caller, tmp_path) -> None:
    content = ARCHIVES[name]()
    with bounded(cpu_s=20):
        answer = caller.post("/projects/rl/uploads", content, content_type="application/gzip")
    assert answer.status_code in {413, 422}, answer.content
    assert answer.json()["code"] in {"invalid_upload", "upload_too_large"}
    assert not Upload.objects.exists()
    blobs = tmp_path / "blobs"
    assert not [path for path in blobs.rglob("*") if path.is_file()]


def many(count: int) -> bytes:
    """Build an archive of `count` empty files."""
    headers = (tarfile.TarInfo(f"{n}").tobuf(tarfile.USTAR_FORMAT) for n in range(count))
    return zipped(b"".join(headers) + bytes(1024)).getvalue()


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(tarfile.TarInfo("x").tobuf() + bytes(64 * MIB)),
        tar_gz(member("x", bytes(8 * MIB))).getvalue(),
        many(3000),
    ],
    ids=["zeros behind an empty file", "a file that unpacks to much", "many tiny files"],
)
def test_a_folder_that_unpacks_to_too_much_is_refused_over_rest(caller, content, monkeypatch):
    limits = Limits(most_bytes=4 * MIB, most_members=2000)
    monkeypatch.setattr(archive, "check", partial(archive.check, limits=limits))
    with bounded():
        answer = caller.post("/projects/rl/uploads", content, content_type="application/gzip")
    assert (answer.status_code, answer.json()["code"]) == (413, "upload_too_large")
    assert not Upload.objects.exists()


def test_a_folder_full_of_folders_is_taken_as_it_is(caller: Caller) -> None:
    content = tar_gz(*(folder(f"f{n}") for n in range(50)), member("x", b"1")).getvalue()
    answer = caller.post("/projects/rl/uploads", content, content_type="application/gzip")
    assert answer.status_code == 201


@pytest.mark.parametrize(
    "disposition", ['attachment; filename="../../x"', "a\tb", "x" * 5000, 'form-data; name="a"']
)
def test_no_name_that_a_caller_gives_becomes_a_path(caller, disposition, tmp_path) -> None:
    content = tar_gz(member("x", b"1")).getvalue()
    answer = caller.post(
        "/projects/rl/uploads",
        content,
        content_type="application/gzip",
        headers={"Content-Disposition": disposition},
    )
    assert answer.status_code == 201
    kept = [path.name for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert kept == [f"{answer.json()['digest']}.tar.gz"] or len(kept) == 1
    assert answer["Location"].endswith(answer.json()["digest"])
