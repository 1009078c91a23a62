"""The weight of pages: bytes at the first visit, requests at the next one."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from bench.traffic import Traffic
from tests.browser.real.living import Living, People

COLD_BYTES, WARM_BYTES, WARM_REQUESTS = 150_000, 30_000, 5
SHORT = "name: featherweight\nrun: echo the last line\n"


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
