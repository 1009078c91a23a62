"""The store of sealed logs: files on the portal's machine, or a S3 bucket, by the environment."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from monarch_portal.env import env_choice, env_int, env_secret, env_str

_MOST_DAYS = 36_500
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
# Characters that every server of S3 takes in a key as they are.
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()-]+(?:/[A-Za-z0-9!_.*'()-]+)*")


def s3_storage() -> dict[str, Any]:
    """Return Django's storage `s3` if MPORTAL_S3 names a bucket for logs, else nothing."""
    place = env_str("MPORTAL_S3").strip()
    if not place:
        return {}
    bucket, prefix = _bucket_and_prefix(place)
    return {
        "s3": {
            "BACKEND": "jobs.logs.s3_storage.S3Storage",
            "OPTIONS": {
                "bucket": bucket,
                "prefix": prefix,
                "endpoint": _endpoint(env_str("MPORTAL_S3_ENDPOINT").strip()),
                "region": env_str("MPORTAL_S3_REGION").strip(),
                "access_key": env_secret("MPORTAL_S3_ACCESS_KEY"),
                "secret_key": env_secret("MPORTAL_S3_SECRET_KEY"),
            },
        }
    }


def log_store(storages: dict[str, Any]) -> str:
    """Return the store of new chunks; ImproperlyConfigured if it is `s3` without a bucket."""
    store = env_choice("MPORTAL_LOG_STORE", ("files", "s3"))
    if store == "s3" and "s3" not in storages:
        raise ImproperlyConfigured("MPORTAL_LOG_STORE=s3 needs MPORTAL_S3=s3://bucket/prefix.")
    return store


def log_days() -> int:
    """Return the days after its attempt's end at which a log is removed; 0: never."""
    days = env_int("MPORTAL_LOG_DAYS", 0)
    if not 0 <= days <= _MOST_DAYS:
        raise ImproperlyConfigured(f"MPORTAL_LOG_DAYS={days} is not from 0 to {_MOST_DAYS}.")
    return days


def _bucket_and_prefix(place: str) -> tuple[str, str]:
    parts = urlsplit(place)
    prefix = unquote(parts.path).strip("/")
    is_sound = (
        parts.scheme == "s3"
        and _BUCKET.fullmatch(parts.netloc)
        and not parts.query + parts.fragment
        and (not prefix or (_PREFIX.fullmatch(prefix) and not {".", ".."} & {*prefix.split("/")}))
    )
    if not is_sound:
        raise ImproperlyConfigured(f"MPORTAL_S3={place!r} is not of the form s3://bucket/prefix.")
    return parts.netloc, prefix


def _endpoint(url: str) -> str:
    if url and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
        raise ImproperlyConfigured(f"MPORTAL_S3_ENDPOINT={url!r} is not an address of the web.")
    return url
