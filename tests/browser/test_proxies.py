"""The examples of the page about proxies, run: a browser uses the portal below a path."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.models import User
from jobs.statuses import JobStatus
from tests.browser.visits import Visitors
from tests.factories import make_attempt, make_job
from tests.waiting import eventually
from tests.web_process import WebProcess

PAGE = Path(__file__).parents[2] / "docs/howto/put-the-portal-behind-a-proxy.md"
UPSTREAM = "127.0.0.1:8000"


def example(language: str, web: WebProcess) -> str:
    """Return the example of the page, with the test's own portal behind it."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    assert UPSTREAM in found[1]
    return found[1].replace(UPSTREAM, web.url.removeprefix("http://"))


def nginx(folder: Path, port: int, web: WebProcess) -> list[str]:
    folders = "".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    server = f"server {{ listen 127.0.0.1:{port}; {example('nginx', web)} }}"
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}}"
        f"http {{ access_log off; {folders} {server} }}"
    )
    return ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(config)]


def caddy(folder: Path, port: int, web: WebProcess) -> list[str]:
    config = folder / "Caddyfile"
    site = example("caddy", web).replace("example.org", f"http://127.0.0.1:{port}")
    config.write_text("{\n    admin off\n}\n" + site)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(config)]


@contextmanager
def running(argv: list[str], folder: Path, address: str) -> Iterator[None]:
    """Run the proxy until the block ends; enter the block when it answers."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if (program := shutil.which(argv[0], path=path)) is None:
        pytest.fail(f"There is no {argv[0]}: run `make browsers`.")
    environment = {"PATH": path, "HOME": str(folder)}
    with subprocess.Popen([program, *argv[1:]], env=environment) as process:
        try:
            assert eventually(lambda: answers(address), timeout_s=30)
            yield
        finally:
            process.terminate()


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz", timeout=2).is_success
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("proxy", [nginx, caddy], ids=lambda proxy: str(proxy.__name__))
def test_pages_and_live_logs_work_below_a_path(
    visitors: Visitors,
    ada: User,
    tmp_path: Path,
    proxy: Callable[[Path, int, WebProcess], list[str]],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/portal"
    project = ada.memberships.get().project
    job = make_job(project, submitted_by=ada, status=JobStatus.RUNNING)
    make_attempt(job)
    web = WebProcess(tmp_path / "home", MPORTAL_URL=address)
    web.start()
    try:
        with running(proxy(tmp_path, port, web), tmp_path, address):
            page = visitors.open(address)
            page.goto(address)  # without a slash at the end
            expect(page).to_have_url(f"{address}/sign-in?next=/portal/")
            # By a link: the portal's own settings read no password that the tests' have hashed.
            page.goto(f"{address}/sign-in/once/{create_sign_in_link(ada)}")
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(f"{address}/rl")
            with page.expect_response(lambda answer: "/logs/stream" in answer.url) as stream:
                page.goto(f"{address}/rl/jobs/{job.pk}")
            assert stream.value.url.startswith(f"{address}/api/v1/")
            assert stream.value.status == 200
            page.get_by_role("link", name="API", exact=True).click()
            expect(page.get_by_text("Monarch portal").first).to_be_visible()
            page.close()
    finally:
        web.close()
