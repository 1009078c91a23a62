"""A real Chromium for every test here, and what it must never complain about.

`deploy/install-browser` installs it; CHROMIUM names another than Debian's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from playwright.sync_api import Browser, Page, expect, sync_playwright

from jobs.models import Project, User
from jobs.statuses import Role
from tests.browser.visits import PASSWORD, PATIENCE_MS, Complaints, Visitors, sign_in
from tests.factories import make_member, make_project
from tests.serving import WebServer
from tests.waiting import eventually

ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Those that drive a portal of their own processes need no database of the session's.
REAL = Path(__file__).parent / "real"


@pytest.fixture(autouse=True)
def patient_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep searches from being refused, however busy the machine is."""
    monkeypatch.setattr("jobs.logs.match_pool.WAIT_S", 60.0)


_OTHERS_AT_WORK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
        AND backend_type = 'client backend'
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test: all need a browser; most a database that other connections see as well."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if REAL not in item.path.parents:
                item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Start the browser, once a session.

    Without one the tests fail, because they run only when they are named.
    """
    expect.set_options(timeout=PATIENCE_MS)
    path = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if path is None:
        pytest.fail("There is no Chromium: run `make browsers`, or name one with CHROMIUM.")
    # Playwright keeps an event loop in this thread, which Django takes for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def web_server(redis_url: str) -> Iterator[WebServer]:
    """Create the session's web server, which `address` starts."""
    server = WebServer(log_config=None)
    yield server
    server.close()


@pytest.fixture(scope="session")
def address(web_server: WebServer) -> str:
    """Start the session's web server and return its address."""
    return web_server.start()


@pytest.fixture
def faults() -> Complaints:
    """Collect this test's complaints of browsers: scripts, refused content, failed requests."""
    return Complaints()


@pytest.fixture
def visitors(
    chromium: Browser, faults: Complaints, request: pytest.FixtureRequest
) -> Iterator[Visitors]:
    """Provide fresh browsers; the test fails if one of them has an unexpected complaint."""
    opened = Visitors(chromium, faults)
    has_database = request.node.get_closest_marker("django_db") is not None
    server = request.getfixturevalue("web_server") if has_database else None
    yield opened
    opened.close()
    is_quiet = True
    if server is not None:
        # The server goes on for a moment with what was asked, and needs the database for its end.
        is_quiet = eventually(lambda: server.is_idle() and _is_unread())
    assert faults == []
    assert is_quiet


def _is_unread() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_OTHERS_AT_WORK)
        return not cursor.fetchone()[0]


@pytest.fixture
def project() -> Project:
    return make_project("rl")


@pytest.fixture
def ada(project: Project) -> User:
    return make_member(project, Role.ADMIN, username="ada", password=PASSWORD)


@pytest.fixture
def visitor(visitors: Visitors, address: str) -> Page:
    """Open a page of an anonymous visitor."""
    return visitors.open(address)


@pytest.fixture
def page(visitor: Page, ada: User) -> Page:
    """Open a page of a user who has signed in."""
    sign_in(visitor)
    return visitor
