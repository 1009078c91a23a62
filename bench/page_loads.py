"""Page loads in a browser, beside the dashboards of Ray and SkyPilot.

`make bench NAME=page_loads`. Each system has a server of its own on loopback. Chromium opens each
page in a new profile (cold), and then again (warm). Ours and Ray's show the same five jobs and the
log of one; SkyPilot's lists are empty, which only favors it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version

import httpx
from playwright.sync_api import (
    Browser,
    BrowserContext,
    StorageState,
    ViewportSize,
    sync_playwright,
)

from bench import ray_peer
from bench.measure import Peer, figures, median, report, say
from bench.own_portal import CHECKOUT, OwnPortal
from bench.own_portal import running as own_portal
from bench.ray_peer import free_port
from bench.traffic import Traffic

ROUNDS, JOBS = 5, 5
LIMIT_S, STOP_LIMIT_S, PATIENCE_MS = 120.0, 30.0, 60_000
ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEWPORT = ViewportSize(width=1280, height=800)
WORD = "hi"
# The largest contentful paint so far, in milliseconds since the start of the navigation.
LARGEST_PAINT = """() => new Promise((resolve) => {
    new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
        .observe({type: "largest-contentful-paint", buffered: true});
})"""


@dataclass(frozen=True, slots=True)
class View:
    """A page, and a text that shows that its content has arrived."""

    name: str
    url: str
    shown: str
    # The cookies of someone who is signed in.
    state: StorageState | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """The times and sizes of one visit."""

    content_s: float
    lcp_s: float
    kb: float
    requests: float


def visit(context: BrowserContext, view: View) -> Load:
    """Open a page until its content is visible and no request has been made for a while."""
    page = context.new_page()
    traffic = Traffic(page)
    began = time.perf_counter()
    page.goto(view.url, timeout=PATIENCE_MS)
    page.get_by_text(view.shown).first.wait_for(timeout=PATIENCE_MS)
    content_s = time.perf_counter() - began
    page.wait_for_timeout(1500)
    lcp_s = page.evaluate(LARGEST_PAINT) / 1000
    page.close()
    return Load(content_s, lcp_s, traffic.bytes / 1000, len(traffic.requests))


def loads(browser: Browser, view: View) -> tuple[Load, Load]:
    """Return the medians of the cold and the warm visits."""
    cold, warm = [], []
    for _ in range(ROUNDS):
        with browser.new_context(viewport=VIEWPORT, storage_state=view.state) as context:
            cold.append(visit(context, view))
            warm.append(visit(context, view))
    found = _median(cold), _median(warm)
    say(f"{view.name} {view.url}: cold {found[0]}, warm {found[1]}")
    return found


def _median(visits: list[Load]) -> Load:
    return Load(
        median(each.content_s for each in visits),
        median(each.lcp_s for each in visits),
        median(each.kb for each in visits),
        median(each.requests for each in visits),
    )


def signed_in(portal: OwnPortal, browser: Browser) -> StorageState:
    """Return the cookies of the portal's first user."""
    link = subprocess.run(
        [sys.executable, "manage.py", "sign_in_link"],
        env={**os.environ, "MPORTAL_HOME": str(portal.home.path)},
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_load_state("networkidle")
        return context.storage_state()


def ours(portal: OwnPortal, browser: Browser) -> dict[str, View]:
    """Return the views of a portal with a few jobs that have ended."""
    jobs = [
        portal.client.submit(portal.project, {"name": "hello", "run": f"echo {WORD}"})
        for _ in range(JOBS)
    ]
    _until(lambda: all(portal.client.job(portal.project, job.id).is_final for job in jobs))
    state = signed_in(portal, browser)
    path = f"{portal.home.url}/{portal.project}/jobs"
    return {
        "list": View("ours", path, "hello", state),
        "log": View("ours", f"{path}/{jobs[-1].id}", WORD, state),
    }


def of_ray(ray: ray_peer.Ray) -> dict[str, View]:
    """Return the views of Ray's dashboard with as many jobs."""
    for _ in range(JOBS):
        ray.seconds_to_first_line()
    jobs = httpx.get(f"{ray.address}/api/jobs/").raise_for_status().json()
    named = jobs[0]["submission_id"]
    return {
        "list": View("ray", f"{ray.address}/#/jobs", named),
        "log": View("ray", f"{ray.address}/#/jobs/{named}", WORD),
    }


@contextmanager
def skypilot() -> Iterator[dict[str, View]]:
    """Start SkyPilot's API server; yield the view of its list of jobs."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "sky.server.server", "--host=127.0.0.1", f"--port={port}"],
            env={**os.environ, "HOME": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _until(lambda: _answers(f"{url}/api/health"))
            yield {"list": View("skypilot", f"{url}/dashboard/clusters", "No active clusters")}
        finally:
            server.terminate()
            server.wait(STOP_LIMIT_S)
            # Its executors ignore SIGTERM.
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("a server was not ready in time")
        time.sleep(0.2)


def _report(name: str, own: tuple[Load, Load], peer: str, other: tuple[Load, Load]) -> None:
    for figure, unit, value, peer_value in (
        ("lcp_s", "s", own[0].lcp_s, other[0].lcp_s),
        ("content_s", "s", own[0].content_s, other[0].content_s),
        ("first_load_kb", "kB", own[0].kb, other[0].kb),
        ("warm_requests", "", own[1].requests, other[1].requests),
        ("warm_kb", "kB", own[1].kb, other[1].kb),
    ):
        report(f"{figure}_{name}", value, unit, peer=Peer(peer, peer_value))


def main() -> None:
    """Load the pages of each system and report ours beside its peers."""
    with (
        figures(),
        own_portal() as portal,
        ray_peer.running() as ray,
        skypilot() as sky,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=ARGUMENTS
        )
        own, peer = ours(portal, browser), of_ray(ray)
        own_loads = {name: loads(browser, view) for name, view in own.items()}
        for name, view in peer.items():
            _report(f"{name}_beside_ray", own_loads[name], ray.version(), loads(browser, view))
        name = f"skypilot {version('skypilot')}"
        _report("list_beside_skypilot", own_loads["list"], name, loads(browser, sky["list"]))
        browser.close()


if __name__ == "__main__":
    main()
