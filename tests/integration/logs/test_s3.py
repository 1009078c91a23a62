"""Sealed chunks in S3, on a real server: kept, read, deleted, and what happens while it is away."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import zstandard
from django.db import connection

from jobs.actions.attempts.diagnose_attempt import diagnose_attempt
from jobs.actions.attempts.hand_secrets import hand_secrets
from jobs.actions.ingest.claim_blobs import claim_blobs
from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.actions.projects.secrets import set_secret
from jobs.attempt_tokens import attempt_token
from jobs.errors import LogStoreAwayError
from jobs.logs import blobs, sealing
from jobs.logs.deletion import delete_log
from jobs.models import Attempt, Installation, LogBlock, LogChunk
from jobs.reconcilers import retention
from jobs.reconcilers import sealing as reconciler
from jobs.statuses import LogStore, Role
from tests.factories import make_actor, make_attempt, make_job, make_project, make_spec, make_token
from tests.frame_bytes import body, frame, lines
from tests.integration.logs.log_texts import end, texts
from tests.web_process import CHECKOUT

pytestmark = pytest.mark.django_db
VALUE = "hunter2-hunter2!"


@pytest.fixture
def sealed(attempt: Attempt, post, s3) -> Attempt:
    """Create an ended attempt whose log is stored in S3."""
    post(*lines(1, 3))
    end(attempt)
    assert sealing.seal(attempt.pk) == 1
    return attempt


@pytest.fixture(autouse=True)
def no_rest_from_other_tests():
    reconciler.REST.end()
    yield
    reconciler.REST.end()


@pytest.mark.feature("P3.3")
def test_sealed_lines_go_to_s3_under_the_installations_key_and_are_read_there(
    sealed, s3, blob_store
) -> None:
    [key] = s3.names()
    assert key.startswith(f"some/where/{Installation.current().key}/logs/{sealed.pk}/")
    assert LogChunk.objects.get().store == LogStore.S3
    assert LogBlock.objects.count() == 0
    assert list(blob_store.rglob("*.zst")) == []
    assert b"r0 s2" in zstandard.decompress(s3.content(key))
    assert texts(sealed) == ["r0 s1", "r0 s2", "r0 s3"]


def test_files_of_before_stay_readable_beside_s3(attempt, post, s3, settings) -> None:
    settings.MPORTAL_LOG_STORE = "files"
    end(attempt)
    for numbers, store in (((1, 2), "files"), ((3, 4), "s3"), ((5, 6), "files")):
        settings.MPORTAL_LOG_STORE = store
        post(*lines(*numbers))
        sealing.seal(attempt.pk)
    stores = LogChunk.objects.order_by("first_line").values_list("store", flat=True)
    assert list(stores) == ["files", "s3", "files"]
    assert texts(attempt) == [f"r0 s{number}" for number in range(1, 7)]


@pytest.mark.django_db(transaction=True)
def test_a_deleted_log_leaves_nothing_in_s3_and_touches_nothing_else(sealed, s3) -> None:
    blobs.write(sealed.pk, 1, b"left by a crash")
    folder = f"some/where/{Installation.current().key}/logs"
    others = [f"{folder}/{sealed.pk}0/x", "some/where/cafe00/logs/1/x", f"logs/{sealed.pk}/x"]
    for key in others:
        s3.put(key)
    delete_log(sealed)
    assert sorted(s3.names()) == sorted(others)


def test_more_objects_than_one_request_deletes_all_go(attempt, s3, monkeypatch) -> None:
    monkeypatch.setattr("jobs.logs.s3_storage._DELETED_AT_ONCE", 2)
    for line in range(1, 6):
        blobs.write(attempt.pk, line, b"content")
    blobs.delete_all(attempt.pk)
    assert s3.names() == []


def test_objects_with_names_of_others_are_left_alone_and_stop_nothing(sealed, s3) -> None:
    folder = f"some/where/{Installation.current().key}/logs"
    names = ["evil", "..;etc", "\u202e", "000000000001-nothex00.zst", "7-1.zst"]
    others = [f"{folder}/{sealed.pk}/{name}" for name in names]
    others += [f"{folder}/{name}/x" for name in ("\u0663", "-1", "1e3", "..7", "9" * 40)]
    for key in others:
        s3.put(key)
    assert blobs.sweep(sealed.pk, LogStore.S3) == 0
    retention.step()
    assert set(others) < set(s3.names())
    assert texts(sealed) == ["r0 s1", "r0 s2", "r0 s3"]


def test_what_a_crash_left_in_s3_is_swept_up_with_the_last_chunk(attempt, post, s3) -> None:
    left = blobs.write(attempt.pk, 1, b"left by a crash")
    post(*lines(1, 2))
    end(attempt)
    sealing.seal(attempt.pk)
    [key] = s3.names()
    assert key.endswith(LogChunk.objects.get().blob_name) and not key.endswith(left.name)


def test_blobs_of_jobs_that_are_gone_go_from_s3_unless_the_database_is_an_older_one(
    s3, monkeypatch
) -> None:
    monkeypatch.setattr(blobs, "UNTOUCHED_FOR", -blobs.UNTOUCHED_FOR)
    attempt = make_attempt()
    gone, future = attempt.pk, attempt.pk + 1000
    attempt.job.delete()
    blobs.write(gone, 1, b"content")
    future_blob = blobs.write(future, 1, b"content")
    assert not claim_blobs(LogStore.S3)
    retention.step()
    assert len(s3.names()) == 2
    blobs.delete(future_blob)
    retention.step()
    assert s3.names() == []


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_deleted_while_s3_is_away_leaves_nothing_there_in_the_end(
    sealed, s3, unreachable_store, settings, monkeypatch
) -> None:
    working = settings.STORAGES
    unreachable_store()
    delete_log(sealed)
    sealed.job.delete()
    settings.STORAGES = working
    retention.step()
    assert len(s3.names()) == 1
    monkeypatch.setattr(blobs, "UNTOUCHED_FOR", -blobs.UNTOUCHED_FOR)
    retention.step()
    assert s3.names() == []


def test_while_s3_is_away_sealing_waits_and_lines_stay_readable(
    attempt, post, s3, unreachable_store, settings
) -> None:
    working = settings.STORAGES
    post(*lines(1, 3))
    end(attempt)
    unreachable_store()
    assert reconciler.due() == [attempt.pk]
    reconciler.step(attempt.pk)
    assert (LogChunk.objects.count(), reconciler.due()) == (0, [])
    assert texts(attempt) == ["r0 s1", "r0 s2", "r0 s3"]
    settings.STORAGES = working
    reconciler.REST.end()
    reconciler.step(attempt.pk)
    assert (LogChunk.objects.count(), LogBlock.objects.count()) == (1, 0)
    assert texts(attempt) == ["r0 s1", "r0 s2", "r0 s3"]


@pytest.fixture
def get(client, sealed):
    """GET something of the sealed attempt's job."""
    _, secret = make_token(sealed.job.submitted_by)
    base = f"/api/v1/projects/{sealed.job.project.slug}/jobs/{sealed.job_id}/logs"
    return lambda path="", **query: client.get(
        base + path, query, headers={"Authorization": f"Bearer {secret}"}
    )


@pytest.mark.parametrize("path", ["", "/search"])
def test_lines_that_cannot_be_had_are_answered_503_with_what_to_do(
    get, unreachable_store, path
) -> None:
    unreachable_store()
    answer = get(path)
    assert (answer.status_code, answer.json()["code"]) == (503, "log_store_away")
    assert "try again" in answer.json()["detail"] and "MPORTAL_S3" in answer.json()["detail"]
    assert "127.0.0.1" not in answer.json()["detail"]
    assert answer.headers["Retry-After"] == "10"


def test_newer_lines_are_read_while_s3_is_away(get, post, sealed, unreachable_store) -> None:
    post(*lines(4, 5))
    unreachable_store()
    answer = get(before="end", limit=2)
    assert [row["text"] for row in answer.json()["results"]] == ["r0 s4", "r0 s5"]


def test_a_missing_bucket_is_reported_by_its_name(get, s3) -> None:
    for key in s3.names():
        s3.client.delete_object(Bucket=s3.name, Key=key)
    s3.client.delete_bucket(Bucket=s3.name)
    answer = get()
    assert (answer.status_code, "NoSuchBucket" in answer.json()["detail"]) == (503, True)


def test_a_log_in_s3_of_a_portal_that_knows_no_s3_says_what_is_missing(sealed, settings) -> None:
    settings.STORAGES = {name: each for name, each in settings.STORAGES.items() if name != "s3"}
    with pytest.raises(LogStoreAwayError, match="MPORTAL_S3"):
        texts(sealed)


def test_an_attempt_ends_though_s3_is_away(sealed, unreachable_store, post) -> None:
    post(frame(4, text="CUDA error: out of memory"))
    Attempt.objects.update(stop_reason="USER_CODE")
    unreachable_store()
    diagnose_attempt(sealed.pk)
    sealed.refresh_from_db()
    assert "out of memory" in sealed.diagnosis["evidence"]


@pytest.mark.feature("P3.3")
def test_a_planted_secret_is_in_no_row_and_no_object(s3) -> None:
    project = make_project()
    set_secret(make_actor(project, Role.MAINTAINER), project, "A", VALUE)
    job = make_job(project, spec=make_spec(secrets=["A"]))
    attempt = make_attempt(job)
    hand_secrets(job, attempt)
    token = attempt_token(job.pk, attempt.number)
    sent = body(frame(1, text=f"control {VALUE}"), frame(2, text=VALUE[:7], more=True))
    ingest_frames(attempt.pk, token, sent)
    [block] = LogBlock.objects.all()
    assert VALUE.encode() not in zstandard.decompress(bytes(block.payload))
    ingest_frames(attempt.pk, token, body(frame(3, text=VALUE[7:]), frame(4, text="end")))
    end(attempt)
    assert sealing.seal(attempt.pk) == 1
    [key] = s3.names()
    stored = zstandard.decompress(s3.content(key))
    assert b"control ***" in stored
    assert not [part for part in (VALUE, VALUE[:7], VALUE[7:]) if part.encode() in stored]
    with connection.cursor() as cursor:
        for table in ("jobs_logblock", "jobs_logchunk", "jobs_loghead"):
            cursor.execute(f"SELECT string_agg(t::text, ' ') FROM {table} AS t")
            assert VALUE not in str(cursor.fetchone()[0])


@pytest.mark.timeout(300)
def test_without_s3_its_library_is_not_loaded(mportal_home) -> None:
    program = (
        "import sys, django; django.setup(); import jobs.api.urls, jobs.tasks; "
        "from jobs.logs import blobs; blobs.attempts_with_blobs(); "
        "print('boto3' in sys.modules, 'botocore' in sys.modules)"
    )
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MPORTAL_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        env={
            **kept,
            "DJANGO_SETTINGS_MODULE": "monarch_portal.settings",
            "MPORTAL_HOME": str(mportal_home),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.stdout == "False False\n", done.stderr
