"""A real Chromium on a real web server over the test database. Skipped where there is none.

Needs `pip install playwright axe-playwright-python` and a Chromium: Playwright's own, or the one
that MPORTAL_CHROMIUM or the system's `chromium` names.
"""

from __future__ import annotations

import importlib
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from jobs.models import Project, User
from jobs.statuses import Role
from tests.factories import make_member, make_project

collect_ignore_glob = [] if find_spec("playwright") else ["test_*.py"]

ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
PASSWORD = "correct horse battery"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs a browser and a database that other connections see."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, once a session."""
    playwright_api = importlib.import_module("playwright.sync_api")
    path = os.environ.get("MPORTAL_CHROMIUM") or shutil.which("chromium")
    # Playwright keeps an event loop in this thread, which Django takes for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with playwright_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except playwright_api.Error as error:
            pytest.skip(f"no Chromium: {error.message.splitlines()[0]}")
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def address(redis_url: str) -> Iterator[str]:
    """A web server of the session's own, as the portal's own one is: ASGI, with live streams."""
    from monarch_portal.asgi import application

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(application, log_config=None, ws="none", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)
    listener.close()


@pytest.fixture
def project() -> Project:
    return make_project("rl")


@pytest.fixture
def ada(project: Project) -> User:
    return make_member(project, Role.ADMIN, username="ada", password=PASSWORD)


@pytest.fixture
def faults() -> list[str]:
    """What the browser complained about: scripts, refused content, failed requests."""
    return []


@pytest.fixture
def visitor(chromium: Any, address: str, faults: list[str]) -> Iterator[Any]:
    """A page in a fresh browser; the test fails when the browser complained."""
    context = chromium.new_context(base_url=address, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda message: faults.append(message.text) if message.type == "error" else None,
    )
    yield page
    context.close()
    assert faults == []


@pytest.fixture
def page(visitor: Any, ada: User) -> Any:
    """A page of somebody who has signed in."""
    visitor.goto("/sign-in")
    visitor.get_by_label("Username").fill("ada")
    visitor.get_by_label("Password").fill(PASSWORD)
    visitor.get_by_role("button", name="Sign in").click()
    visitor.wait_for_url("**/rl/jobs")
    return visitor
