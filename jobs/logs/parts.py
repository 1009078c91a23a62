"""The blocks of the tail and the sealed chunks of a log, as one sequence without holes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection

from jobs.errors import NotFoundError
from jobs.logs import stores
from jobs.logs.lines import decompressed
from jobs.logs.stores import Blob
from jobs.models import LogChunk
from jobs.statuses import LogStore

# One statement sees one state of the database: a line that moves from the tail into a chunk
# meanwhile is found in exactly one of the two.
_PARTS = """(
    SELECT first_line, line_count, payload, NULL AS store, NULL AS blob_name
    FROM jobs_logblock WHERE attempt_id = %(attempt)s
    UNION ALL
    SELECT first_line, line_count, NULL, store, blob_name
    FROM jobs_logchunk WHERE attempt_id = %(attempt)s
) AS parts"""
_FORWARD = f"""SELECT * FROM {_PARTS}
    WHERE first_line >= COALESCE(
        (SELECT first_line FROM {_PARTS} WHERE first_line <= %(line)s
         ORDER BY first_line DESC LIMIT 1), 0)
      AND first_line + line_count > %(line)s
    ORDER BY first_line LIMIT %(wave)s"""  # noqa: S608 - no value is put into the text
_BACKWARD = f"""SELECT * FROM {_PARTS} WHERE first_line < %(line)s
    ORDER BY first_line DESC LIMIT %(wave)s"""  # noqa: S608
# Parts fetched at once: more for a reader that goes on, few for a single screen.
_FIRST_WAVE, _LAST_WAVE = 4, 32


@dataclass(frozen=True, slots=True)
class Part:
    """Lines `first_line` to `end - 1`, still compressed or still in a blob store."""

    attempt_id: int
    first_line: int
    end: int
    payload: bytes | None
    blob: Blob | None

    @property
    def is_far(self) -> bool:
        """Whether reading it means asking another machine."""
        return self.blob is not None and self.blob.store != LogStore.FILES

    def stored_lines(self) -> list[str]:
        """Return the lines as they are stored, in order."""
        return decompressed(self.stored()).decode().split("\n")

    def stored(self) -> bytes:
        """Return the lines as they are stored, compressed."""
        if self.blob is None:
            return bytes(self.payload or b"")
        try:
            return stores.read(self.blob)
        except FileNotFoundError:
            # It was moved to another store, or removed, since its row was read.
            return stores.read(self._other_blob())

    def _other_blob(self) -> Blob:
        """Return the chunk's present blob. NotFoundError: it has none."""
        chunks = LogChunk.objects.filter(attempt_id=self.attempt_id, first_line=self.first_line)
        place = chunks.values_list("store", "blob_name").first()
        if place is None:
            raise NotFoundError("This part of the log was removed while it was read.")
        return Blob(*place)


def forward(attempt_id: int, line: int) -> Iterator[Part]:
    """Yield the parts from the one that holds `line` to the last."""
    wave = _FIRST_WAVE
    while True:
        parts = _fetch(_FORWARD, attempt_id, line, wave)
        yield from parts
        if len(parts) < wave:
            return
        line = parts[-1].end
        wave = min(wave * 2, _LAST_WAVE)


def backward(attempt_id: int, line: int) -> Iterator[Part]:
    """Yield the parts from the one that holds `line - 1` to the first."""
    wave = _FIRST_WAVE
    while True:
        parts = _fetch(_BACKWARD, attempt_id, line, wave)
        yield from parts
        if len(parts) < wave:
            return
        line = parts[-1].first_line
        wave = min(wave * 2, _LAST_WAVE)


def _fetch(query: str, attempt_id: int, line: int, wave: int) -> list[Part]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"attempt": attempt_id, "line": line, "wave": wave})
        return [
            Part(attempt_id, begin, begin + count, payload, Blob(store, name) if name else None)
            for begin, count, payload, store, name in cursor.fetchall()
        ]
