"""Appending lines to an attempt's log. Numbers are given here, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator

from jobs import clock
from jobs.logs.lines import BLOCK_BYTES, packed
from jobs.models import LogBlock, LogHead


def locked_head(attempt_id: int) -> LogHead:
    """The attempt's head, locked until the transaction ends; made where it is missing."""
    heads = LogHead.objects.select_for_update(no_key=True)
    head = heads.filter(pk=attempt_id).first()
    if head is None:
        LogHead.objects.get_or_create(attempt_id=attempt_id)
        head = heads.get(pk=attempt_id)
    return head


def append(head: LogHead, lines: list[str]) -> None:
    """Store `lines` (see `jobs.logs.lines.encoded`) after all others and advance the locked `head`.

    The caller saves the head, together with what it acknowledges.
    """
    now = clock.now()
    blocks = []
    for part in _cut(lines):
        payload, raw_bytes = packed(part)
        blocks.append(
            LogBlock(
                attempt_id=head.pk,
                first_line=head.next_line,
                created_at=now,
                line_count=len(part),
                raw_bytes=raw_bytes,
                payload=payload,
            )
        )
        head.next_line += len(part)
        head.raw_bytes += raw_bytes
        head.tail_bytes += raw_bytes
    LogBlock.objects.bulk_create(blocks)


def _cut(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines of about a block each; a line is never cut."""
    begin = size = 0
    for index, line in enumerate(lines):
        if size and size + len(line) > BLOCK_BYTES:
            yield lines[begin:index]
            begin, size = index, 0
        size += len(line) + 1
    if begin < len(lines):
        yield lines[begin:]
