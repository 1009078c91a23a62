"""A look at the database that fails: when the stream ends quietly, and when it is a mistake."""

from __future__ import annotations

import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError

from jobs.errors import NotFoundError
from jobs.live.looking import Look, _look


class Failing:
    """A watch whose look raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def topics(self) -> set[str]:
        return set()

    def look(self, hinted: set[str]) -> Look:
        raise self._error


@pytest.mark.parametrize("error", [OperationalError(), InterfaceError(), NotFoundError()])
def test_a_stream_ends_when_the_database_is_lost_or_its_thing_is_gone(error):
    assert _look(Failing(error), set()) == Look([], is_over=True)


def test_a_mistake_of_the_portals_is_not_taken_for_a_lost_database():
    with pytest.raises(ProgrammingError):
        _look(Failing(ProgrammingError()), set())
