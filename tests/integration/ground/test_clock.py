"""The database's clock, read from a real database."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from jobs.ground.clock import DatabaseClock, read_database_clock

pytestmark = pytest.mark.django_db


def test_a_thousand_questions_are_one_query(django_assert_num_queries):
    clock = DatabaseClock(read_database_clock)
    with django_assert_num_queries(1):
        moments = [clock.now() for _ in range(1000)]
    assert moments == sorted(moments)
    assert abs(moments[0] - timezone.now()) < timedelta(seconds=5)


def test_a_transaction_that_has_failed_is_not_made_worse():
    """Use the last reading in a failed transaction, and in an event loop."""
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        with pytest.raises(DatabaseError):
            cursor.execute("SELECT 1 / 0")
        assert read_database_clock() is None
        cursor.execute("SELECT 1")


def test_an_event_loop_is_not_held_up():
    async def ask() -> object:
        return read_database_clock()

    assert asyncio.run(ask()) is None
