"""The broker's transport: what counts as a broker that is away."""

from __future__ import annotations

import pytest
from redis.exceptions import OutOfMemoryError

from monarch_portal.celery import app


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "redis+socket:///nowhere/redis.sock"])
def test_a_full_redis_is_a_broker_that_is_away_for_now(url: str) -> None:
    connection = app.connection_for_read(url)
    assert issubclass(OutOfMemoryError, connection.connection_errors)
    assert issubclass(OutOfMemoryError, connection.recoverable_connection_errors)
