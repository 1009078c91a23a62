"""A look at the database that fails: when the stream ends quietly, and when it is a mistake."""

from __future__ import annotations

import asyncio
import math

import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError

from jobs.errors import NotFoundError
from jobs.live.access import Access
from jobs.live.looking import Look, News, Watch, _look, in_thread
from jobs.live.shared_reads import Common, Newest, SharedReads


class Failing(Watch):
    """A watch that raises, where it reads or where its reader's permission is checked."""

    def __init__(self, error: Exception, *, is_barred: bool) -> None:
        super().__init__(Access(self._raise, self))
        self._error = error
        if is_barred:
            self.access._right.checked_at = -math.inf

    def _raise(self) -> News:
        raise self._error

    def wants(self, hinted: set[str]) -> Common[News]:
        return Common("here", self._raise)


def look_of(watch: Watch) -> Look:
    async def looked() -> Look:
        return await _look(watch, set(), Newest(0), SharedReads(in_thread, len), 0)

    return asyncio.run(looked())


@pytest.mark.parametrize("is_barred", [False, True])
@pytest.mark.parametrize("error", [OperationalError(), InterfaceError(), NotFoundError()])
def test_a_stream_ends_when_the_database_is_lost_or_its_thing_is_gone(error, is_barred):
    assert look_of(Failing(error, is_barred=is_barred)) == Look([], is_over=True)


@pytest.mark.parametrize("is_barred", [False, True])
def test_a_mistake_of_the_portals_is_not_taken_for_a_lost_database(is_barred):
    with pytest.raises(ProgrammingError):
        look_of(Failing(ProgrammingError(), is_barred=is_barred))
