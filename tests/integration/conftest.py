"""Fixtures that all tests with a database share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from whitenoise.middleware import WhiteNoiseMiddleware

from jobs.background.lock_session import lock_session


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Close the session of the locks before the test database is dropped."""
    yield
    lock_session().close()


@pytest.fixture(autouse=True)
def no_plan_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the plan that readers share for five seconds where a plan took long."""
    monkeypatch.setattr("jobs.queueing.current_pass._last", None)


@pytest.fixture(scope="session", autouse=True)
def static_files_are_searched_once() -> Iterator[None]:
    """Share the list of static files: each test client loads the middleware that makes it."""
    found: dict[str, object] = {}
    search = WhiteNoiseMiddleware.add_files_from_finders

    def search_once(files: WhiteNoiseMiddleware) -> None:
        if not found:
            search(files)
            found.update(files.files)
        files.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", search_once)
        yield
