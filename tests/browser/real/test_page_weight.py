"""The weight of pages: bytes at the first visit, requests at the next one."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.real.living import Living, People

COLD_BYTES, WARM_BYTES, WARM_REQUESTS = 150_000, 30_000, 5
SHORT = "name: featherweight\nrun: echo the last line\n"


class Traffic:
    """The requests of a page that its browser's caches could not answer, and their bytes."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0
        self._urls: dict[str, str] = {}
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._request)
        session.on("Network.requestServedFromCache", self._cached)
        session.on("Network.responseReceived", self._response)
        session.on("Network.dataReceived", self._data)
        session.send("Network.enable")

    @property
    def requests(self) -> list[str]:
        """The addresses that were requested."""
        return list(self._urls.values())

    def clear(self) -> None:
        """Forget what was counted so far."""
        self._urls.clear()
        self.bytes = 0

    def _request(self, event: dict[str, Any]) -> None:
        self._urls[event["requestId"]] = event["request"]["url"]

    def _cached(self, event: dict[str, Any]) -> None:
        self._urls.pop(event["requestId"], None)

    def _response(self, event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            self._cached(event)

    def _data(self, event: dict[str, Any]) -> None:
        self.bytes += event["encodedDataLength"]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/rl/jobs/{}", "the last line"),
        ("/rl/jobs", "featherweight"),
        ("/rl/jobs/new", "Submit"),
    ],
)
def test_a_page_is_light_at_the_first_visit_and_lighter_at_the_next(
    living: Living, people: People, path: str, shown: str
) -> None:
    job_id = living.submit("mia", SHORT)
    page = people("mia")
    traffic = Traffic(page)
    page.goto(path.format(job_id))
    expect(page.locator("main").get_by_text(shown).first).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert traffic.bytes < COLD_BYTES
    traffic.clear()
    page.reload()
    expect(page.locator("main").get_by_text(shown).first).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert len(traffic.requests) <= WARM_REQUESTS, traffic.requests
    assert traffic.bytes < WARM_BYTES
