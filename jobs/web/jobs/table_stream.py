"""The stream of a job table: the rows that changed, rendered once for all readers of a table."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from jobs.errors import InvalidCursorError, NotFoundError
from jobs.live import sse
from jobs.live.access import Access
from jobs.live.channel import project_topic
from jobs.live.looking import Look, News, Watch
from jobs.live.packing import Piece
from jobs.live.shared_reads import Common
from jobs.models import Project
from jobs.permissions import Actor
from jobs.web.base.access import actor_of
from jobs.web.base.live import CHANGED, stream_of
from jobs.web.base.live_parts import Element
from jobs.web.jobs.table_page import table_context
from jobs.web.jobs.table_query import filter_of

# However fast jobs change, a table is rendered twice a second at most.
PACE_S = 0.5


@require_GET
def job_table_stream(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Stream `/{slug}/jobs/stream`: the rows of the table with the address's filters."""

    def watch(access: Access, project: Project) -> TableWatch:
        return TableWatch(access, actor_of(request), project, request.GET)

    return stream_of(request, slug, "table", watch)


@dataclass(slots=True)
class _Table:
    """A rendered table: its rows by their ids, in order, and the elements around them.

    `frame` differs where the page needs more than rows: another head, or no table at all.
    """

    rows: dict[str, Element]
    around: tuple[Element, ...]
    frame: tuple[bool, ...]
    # The table before, and the event since then: almost all readers need the same.
    _before: tuple[_Table, Piece | None] | None = field(default=None, compare=False, repr=False)

    def since(self, old: _Table) -> Piece | None:
        """Return the event that makes `old` this table; None if they are equal."""
        if old is self:
            return None
        if self._before is None or self._before[0] is not old:
            self._before = (old, self._event_since(old))
            # Readers who are so far behind make the event themselves.
            old._before = None
        return self._before[1]

    def _event_since(self, old: _Table) -> Piece | None:
        if self.frame != old.frame:
            return CHANGED
        order = list(self.rows)
        rows = [row.html for key, row in self.rows.items() if old.rows.get(key) != row]
        around = zip(self.around, old.around, strict=True)
        parts = [new.html for new, was in around if new != was]
        if not (rows or parts) and order == list(old.rows):
            return None
        content = {"order": order, "rows": "".join(rows), "parts": "".join(parts)}
        return sse.event("rows", json.dumps(content, ensure_ascii=False))


class TableWatch(Watch):
    """A watch over one table. Equal tables of several readers are read and rendered together."""

    pace_s = PACE_S

    def __init__(self, access: Access, actor: Actor, project: Project, query: QueryDict) -> None:
        super().__init__(access)
        self._actor, self._project, self._query = actor, project, query
        # Only "my jobs" differ between readers: rows show no rights.
        reader = actor.user.pk if filter_of(query).user == "me" else None
        self._key = ("table", project.pk, query.urlencode(), reader)
        self._shown: _Table | None = None
        self._is_behind = False

    def topics(self) -> set[str]:
        """Return the topic of the project."""
        return {project_topic(self._project.pk)}

    def wants(self, hinted: set[str]) -> Common[News] | None:
        """Read the table after a hint."""
        if not (hinted or self._is_behind):
            return None
        return Common(self._key, self._read)

    def take(self, news: News, *, is_newest: bool) -> Look:
        """Return what changed since the last look; the page itself requests the whole at first."""
        new: _Table | None = news.found
        if new is None:
            return Look([])
        event = CHANGED if self._shown is None else new.since(self._shown)
        self._shown, self._is_behind = new, not is_newest
        return Look([] if event is None else [event], is_behind=self._is_behind)

    def _read(self) -> News:
        try:
            context = table_context(self._actor, self._project, self._query)
        except InvalidCursorError as error:
            raise NotFoundError("The table's address has an invalid cursor.") from error
        return News([], _rendered(context))


def _rendered(context: dict[str, Any]) -> _Table:
    table = context["table"]
    rows = {
        f"job-{job.id}": _element("jobs/_row.html", {**context, "job": job}) for job in table.rows
    }
    around = tuple(_element(name, context) for name in ("jobs/_chips.html", "jobs/_pager.html"))
    return _Table(rows, around, frame=(table.has_costs, table.has_gpu_use, bool(table.rows)))


def _element(template: str, context: dict[str, Any]) -> Element:
    return Element.of(render_to_string(template, context))
