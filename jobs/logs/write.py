"""Appending lines to an attempt's log. Numbers are given here, in order of arrival."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from django.db import connection

from jobs.ground import clock
from jobs.logs.lines import BLOCK_BYTES, packed
from jobs.models import LogHead

# Each batch of lines of each job pays for these: made up by models they take five times as long.
# By their names: a statement that is prepared must not find other columns after a migration.
_LOCKED = """
SELECT attempt_id, next_line, sealed_before, acked, last_lines, open_ends, raw_bytes,
    tail_bytes, removed_at
FROM jobs_loghead WHERE attempt_id = %s FOR NO KEY UPDATE
"""
_BLOCK = "(%s, %s, %s, %s, %s, %s)"
_ADD_BLOCKS = """WITH added AS (
    INSERT INTO jobs_logblock
        (attempt_id, first_line, created_at, line_count, raw_bytes, payload)
    VALUES {blocks})
"""
_SAVE_HEAD = """UPDATE jobs_loghead
SET next_line = %s, acked = %s, last_lines = %s, open_ends = %s, raw_bytes = %s,
    tail_bytes = %s
WHERE attempt_id = %s"""


def locked_head(attempt_id: int) -> LogHead:
    """Return the attempt's head, locked until the transaction ends; made if it is missing."""
    heads = LogHead.objects.raw(_LOCKED, [attempt_id])
    for head in heads:
        return head
    LogHead.objects.get_or_create(attempt_id=attempt_id)
    return LogHead.objects.select_for_update(no_key=True).get(pk=attempt_id)


def append(head: LogHead, lines: list[str]) -> None:
    """Store `lines` (see `jobs.logs.lines.encoded`) after all others, and save the locked `head`.

    So lines and what the head acknowledges are stored in one statement.
    """
    now = clock.now()
    blocks: list[tuple[Any, ...]] = []
    for part in _cut(lines):
        payload, raw_bytes = packed(part)
        blocks.append((head.pk, head.next_line, now, len(part), raw_bytes, payload))
        head.next_line += len(part)
        head.raw_bytes += raw_bytes
        head.tail_bytes += raw_bytes
    adding = _ADD_BLOCKS.format(blocks=", ".join([_BLOCK] * len(blocks))) if blocks else ""
    maps = map(json.dumps, (head.acked, head.last_lines, head.open_ends))
    saved = (head.next_line, *maps, head.raw_bytes, head.tail_bytes, head.pk)
    with connection.cursor() as cursor:
        cursor.execute(adding + _SAVE_HEAD, [*chain.from_iterable(blocks), *saved])


def _cut(lines: list[str]) -> Iterator[list[str]]:
    """Yield runs of lines of about a block each; a line is never cut."""
    begin = size = 0
    for index, line in enumerate(lines):
        if size and size + len(line) > BLOCK_BYTES:
            yield lines[begin:index]
            begin, size = index, 0
        size += len(line) + 1
    if begin < len(lines):
        yield lines[begin:]
