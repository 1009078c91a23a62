"""A look at the database that fails: when the stream ends quietly, and when it is a mistake."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError

from jobs.errors import NotFoundError
from jobs.live.feed import Feed, Hints
from jobs.live.looking import Look, News, Watch, _look
from jobs.live.shared_reads import Common


class Failing(Watch):
    """A watch whose look raises, whether it is alone with it or not."""

    def __init__(self, error: Exception, *, shares: bool) -> None:
        self._error = error
        self._shares = shares

    def look(self, _: Any = None) -> Any:
        raise self._error

    def common(self, hinted: set[str]) -> Common[News] | None:
        return Common("here", self.look) if self._shares else None


def look_of(watch: Watch) -> Look:
    async def looked() -> Look:
        return await _look(watch, set(), Hints(Feed("redis://unused")))

    return asyncio.run(looked())


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("error", [OperationalError(), InterfaceError(), NotFoundError()])
def test_a_stream_ends_when_the_database_is_lost_or_its_thing_is_gone(error, shares):
    assert look_of(Failing(error, shares=shares)) == Look([], is_over=True)


@pytest.mark.parametrize("shares", [False, True])
def test_a_mistake_of_the_portals_is_not_taken_for_a_lost_database(shares):
    with pytest.raises(ProgrammingError):
        look_of(Failing(ProgrammingError(), shares=shares))
