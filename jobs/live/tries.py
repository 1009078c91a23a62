"""Counts tries that failed, so that guessing is slow: under one name, and from one address.

The counts are in Redis: all web processes share them, and without Redis no user is locked out. What
is counted is kept as a digest, for people mistype passwords into the field of the name.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import math
import unicodedata
from dataclasses import dataclass

import redis
from django.conf import settings

from jobs.errors import TooManyTriesError
from jobs.ground.redis_client import connection

log = logging.getLogger(__name__)

WINDOW_S = 300
_NAME = "name"
# Longer than any name may be; what is behind it does not make another one.
_NAME_LENGTH = 200
# The owner of one IPv6 address has all of its network as well.
_NETWORK_BITS = 64
# Only where there is a count still: one that is made by this would never end.
_TAKE_BACK = "if redis.call('exists', KEYS[1]) == 1 then redis.call('decr', KEYS[1]) end"


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject whose tries are counted together, and how many may fail within the window."""

    kind: str
    value: str
    most: int

    @property
    def key(self) -> str:
        """Name of the counter in Redis."""
        digest = hashlib.sha256(self.value.encode(errors="surrogatepass")).hexdigest()
        return f"mportal:tries:{self.kind}:{digest}"


def of_name(name: str) -> Subject:
    """Count tries to sign in as `name`, which need not exist, however it is written."""
    name = unicodedata.normalize("NFKC", name.strip()[:_NAME_LENGTH]).casefold()
    return Subject(_NAME, name, settings.MPORTAL_TRIES_PER_NAME)


def of_address(address: str) -> Subject:
    """Count tries to sign in by password from one network address."""
    return _from_address("address", address)


def of_links_from(address: str) -> Subject:
    """Count unknown one-time links from one address: a good one is never refused for them."""
    return _from_address("links", address)


def of_tokens_from(address: str) -> Subject:
    """Count unknown tokens from one address: a program that repeats one locks no people out."""
    return _from_address("tokens", address)


def begin_try(*subjects: Subject) -> None:
    """Count one try of each subject; TooManyTriesError when one of them had enough that failed.

    A try counts as failed until `succeeded` is called: many at once are counted before the first
    of them has failed.
    """
    limited = [subject for subject in subjects if subject.most > 0]
    try:
        counts = [_count(subject) for subject in limited]
    except redis.RedisError:
        log.warning("tries are not counted", extra={"action": "tries_uncounted"}, exc_info=True)
        return
    for subject, (count, wait_s) in zip(limited, counts, strict=True):
        if count > subject.most:
            raise _refusal(subject, wait_s)


def succeeded(*subjects: Subject) -> None:
    """Record that the try was good: a name starts anew, an address is as if it had not been."""
    try:
        for subject in subjects:
            if subject.kind == _NAME:
                connection().delete(subject.key)
            else:
                connection().eval(_TAKE_BACK, 1, subject.key)
    except redis.RedisError:
        log.warning("tries are not counted", extra={"action": "tries_uncounted"}, exc_info=True)


def _from_address(kind: str, address: str) -> Subject:
    return Subject(kind, _host(address), settings.MPORTAL_TRIES_PER_ADDRESS)


def _host(address: str) -> str:
    """Return the part that belongs to one host for certain: an IPv4 address, or an IPv6 network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _NETWORK_BITS), strict=False))


def _count(subject: Subject) -> tuple[int, int]:
    """Count this try; return the tries in this window, and how many seconds it still lasts."""
    pipe = connection().pipeline(transaction=True)
    pipe.set(subject.key, 0, ex=WINDOW_S, nx=True)
    pipe.incr(subject.key)
    pipe.ttl(subject.key)
    _, count, left_s = pipe.execute()
    return int(count), max(1, int(left_s))


def _refusal(subject: Subject, wait_s: int) -> TooManyTriesError:
    where = "under this name" if subject.kind == _NAME else "from your address"
    minutes = math.ceil(wait_s / 60)
    words = f"{minutes} minutes" if minutes > 1 else "a minute"
    log.warning(
        "too many tries",
        extra={"action": "tries_refused", "counted": subject.kind, "of": subject.key},
    )
    return TooManyTriesError(
        f"Too many tries {where} have failed. Wait {words}.", retry_after=wait_s
    )
