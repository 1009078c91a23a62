"""The store of logs, as the environment sets it, and the errors for wrong values."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from monarch_portal.log_store_settings import log_days, log_store, s3_storage


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("S3", "S3_ENDPOINT", "S3_REGION", "S3_ACCESS_KEY", "S3_SECRET_KEY", "LOG_STORE"):
        monkeypatch.delenv(f"MPORTAL_{name}", raising=False)


def test_without_a_word_logs_go_to_files():
    assert s3_storage() == {}
    assert log_store({}) == "files"


@pytest.mark.parametrize(
    ("place", "bucket", "prefix"),
    [
        ("s3://logs", "logs", ""),
        ("s3://my.logs-1/", "my.logs-1", ""),
        ("s3://logs/portal/of%2Dus/", "logs", "portal/of-us"),
    ],
)
def test_a_place_is_a_bucket_and_a_prefix(monkeypatch, place, bucket, prefix):
    monkeypatch.setenv("MPORTAL_S3", place)
    monkeypatch.setenv("MPORTAL_S3_ENDPOINT", "http://minio:9000")
    options = s3_storage()["s3"]["OPTIONS"]
    assert (options["bucket"], options["prefix"]) == (bucket, prefix)
    assert options["endpoint"] == "http://minio:9000"
    monkeypatch.setenv("MPORTAL_LOG_STORE", "S3")
    assert log_store(s3_storage()) == "s3"


@pytest.mark.parametrize(
    "place",
    [
        "logs",
        "s3://",
        "s3:///prefix",
        "https://logs.example.org/x",
        "s3://user:pass@logs",
        "s3://a",
        "s3://logs/../x",
        "s3://logs/a//b",
        "s3://logs/%2e%2e/x",
        "s3://logs/a b",
        "s3://logs/a%00b",
        "s3://logs/x?versionId=1",
        "s3://logs/x#y",
    ],
)
def test_what_is_no_place_is_named(monkeypatch, place):
    monkeypatch.setenv("MPORTAL_S3", place)
    with pytest.raises(ImproperlyConfigured, match="MPORTAL_S3="):
        s3_storage()


def test_an_endpoint_that_is_no_address_is_named(monkeypatch):
    monkeypatch.setenv("MPORTAL_S3", "s3://logs")
    monkeypatch.setenv("MPORTAL_S3_ENDPOINT", "minio:9000")
    with pytest.raises(ImproperlyConfigured, match="MPORTAL_S3_ENDPOINT"):
        s3_storage()


def test_new_logs_cannot_go_to_an_s3_that_is_not_named(monkeypatch):
    monkeypatch.setenv("MPORTAL_LOG_STORE", "s3")
    with pytest.raises(ImproperlyConfigured, match="MPORTAL_S3=s3://bucket/prefix"):
        log_store({})


@pytest.mark.parametrize("days", ["-1", "36501", "many"])
def test_a_number_of_days_that_would_remove_everything_or_nothing_is_refused(monkeypatch, days):
    monkeypatch.setenv("MPORTAL_LOG_DAYS", days)
    with pytest.raises(ImproperlyConfigured, match="MPORTAL_LOG_DAYS="):
        log_days()


def test_the_secret_key_may_lie_in_a_file(monkeypatch, tmp_path):
    (tmp_path / "key").write_text("from the file\n")
    monkeypatch.setenv("MPORTAL_S3", "s3://logs")
    monkeypatch.setenv("MPORTAL_S3_SECRET_KEY_FILE", str(tmp_path / "key"))
    assert s3_storage()["s3"]["OPTIONS"]["secret_key"] == "from the file"
