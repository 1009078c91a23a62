"""The stores of sealed chunks: files, and S3 if one is named. A chunk's row says which.

New chunks go to settings.MPORTAL_LOG_STORE. Chunks in the other store are read there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple
from weakref import WeakKeyDictionary

from django.conf import settings
from django.core.files.storage import Storage, storages

from jobs.errors import LogStoreAwayError
from jobs.statuses import LogStore

log = logging.getLogger(__name__)

# For so long no caller waits for a store that has just timed out: what waits are
# threads that others need.
SILENT_S = 5.0
_silent_until: WeakKeyDictionary[Storage, float] = WeakKeyDictionary()

# Django's names of the storages. Uploads are in files as well, whatever the logs do.
_ALIASES = {LogStore.FILES: "default", LogStore.S3: "s3"}
_NOT_NAMED = (
    "A part of this log is in S3, which this portal cannot reach: its administrator has to set "
    "MPORTAL_S3."
)
_AWAY = (
    "The store with the older parts of this log does not answer as it should ({why}). Nothing is "
    "lost: try again in a moment. If it stays like this, the portal's administrator looks at "
    "MPORTAL_S3 and at that server."
)


class Blob(NamedTuple):
    """One blob: in which store, and its name there."""

    store: str
    name: str


def for_new_chunks() -> str:
    """Return the store that the next chunk goes to."""
    return str(settings.MPORTAL_LOG_STORE)


def configured() -> list[str]:
    """List the stores that this portal can reach."""
    return [store for store, alias in _ALIASES.items() if alias in settings.STORAGES]


@contextmanager
def asking(store: str) -> Iterator[Storage]:
    """Open the store. LogStoreAwayError: it is not named, or does not answer as it should."""
    if store not in configured():
        raise LogStoreAwayError(_NOT_NAMED)
    storage = storages[_ALIASES[LogStore(store)]]
    if monotonic() < _silent_until.get(storage, 0.0):
        raise LogStoreAwayError(_AWAY.format(why="it did not answer just now"))
    try:
        yield storage
    except getattr(storage, "failures", ()) as error:
        if not hasattr(error, "response"):
            _silent_until[storage] = monotonic() + SILENT_S
        log.warning("%s: %s", store, error, extra={"action": "log_store_away"})
        raise LogStoreAwayError(_AWAY.format(why=_short(error))) from error


def read(blob: Blob) -> bytes:
    """Read the whole content. FileNotFoundError: there is no such blob; LogStoreAwayError."""
    with asking(blob.store) as storage, storage.open(blob.name) as file:
        content: bytes = file.read()
    return content


def _short(error: BaseException) -> str:
    """Return the server's error code, else the error's type: a whole message may name hosts."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict) and (code := answer.get("Error", {}).get("Code")):
        return str(code)[:60]
    return type(error).__name__
