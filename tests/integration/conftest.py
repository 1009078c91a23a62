"""What all tests with a database share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.reconcilers.lock_session import lock_session


@pytest.fixture(scope="session", autouse=True)
def locks_end_with_the_session(django_db_setup: None) -> Iterator[None]:
    """Close the session of the locks before its database is dropped."""
    yield
    lock_session().close()
