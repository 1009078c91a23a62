"""Write the audit log. Every action that changes something calls `record`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Model

from jobs.audit.request_context import current_request
from jobs.audit.targets import Target, target_of
from jobs.models import AuditEntry
from jobs.permissions import Actor

# The source of changes that management commands make on the portal's own host.
COMMAND_LINE = "command line"
_LONGEST_SOURCE, _LONGEST_NAME = 60, 250

Values = Mapping[str, Any]

log = logging.getLogger(__name__)


def record(
    actor: Actor | None,
    verb: str,
    target: Target | Model,
    *,
    before: Values | None = None,
    after: Values | None = None,
) -> None:
    """Store that `actor` did `verb` to `target`; call it in the transaction of the change.

    `before` and `after` are the values that changed, None where there were none; nothing is stored
    if they are equal. Never pass a secret. No actor: a command on the portal's own host.
    """
    if before is not None and before == after:
        return
    entry = _entry(actor, verb, target, before, after)
    entry.save(force_insert=True)
    _log(entry)


def record_created(actor: Actor | None, verb: str, rows: Iterable[tuple[Model, Values]]) -> None:
    """Store that `actor` created each of the rows, with these values; in one statement."""
    entries = [_entry(actor, verb, row, None, after) for row, after in rows]
    AuditEntry.objects.bulk_create(entries)
    for entry in entries:
        _log(entry)


def _entry(
    actor: Actor | None,
    verb: str,
    target: Target | Model,
    before: Values | None,
    after: Values | None,
) -> AuditEntry:
    what = target if isinstance(target, Target) else target_of(target)
    request = current_request()
    source = (actor.source if actor else "") or request.address or COMMAND_LINE
    token, driver = (actor.token, actor.driver) if actor else (None, None)
    return AuditEntry(
        verb=verb,
        user_id=actor.user.pk if actor else None,
        username=actor.user.get_username() if actor else "",
        token_id=token.pk if token else None,
        token_name=token.name if token else "",
        caller_job_id=driver.job_id if driver else None,
        source=source[:_LONGEST_SOURCE],
        request_id=request.request_id,
        kind=what.kind,
        object_id=what.id,
        name=what.name[:_LONGEST_NAME],
        project_id=what.project.pk if what.project else None,
        project_slug=what.project.slug if what.project else "",
        before=before,
        after=after,
    )


def _log(entry: AuditEntry) -> None:
    context = {
        "action": entry.verb,
        "user": entry.username,
        "project": entry.project_slug,
        "request_id": entry.request_id,
    }
    log.info("%s: %s %s", entry.verb, entry.kind, entry.name, extra=context)
