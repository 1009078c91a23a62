"""The connection is lost while lines arrive: the page reports it, recovers, and misses no line."""

from __future__ import annotations

import os
import signal

import pytest
from playwright.sync_api import Page, expect

from tests.waiting import eventually

# Keeps what the page has said about its connection, however short it said it.
LISTEN = """() => {
  const sign = document.getElementById("log-state");
  window.said = [sign.dataset.state];
  new MutationObserver(() => window.said.push(sign.dataset.state))
    .observe(sign, { attributes: true, attributeFilter: ["data-state"] });
}"""
SHOWN = "[...document.querySelectorAll('#log-lines li.stdout .t')].map((line) => line.textContent)"


@pytest.fixture
def counting(living):
    job = living.count("mia")
    living.wait(job.id, "RUNNING")
    return job


@pytest.fixture
def page(people, counting):
    """Open Mia's page with her job's lines arriving."""
    page = people("mia")
    page.goto(f"/rl/jobs/{counting.id}")
    page.locator("#log-state[data-state=live]").wait_for()
    page.get_by_text("line 20", exact=True).wait_for()
    page.evaluate(LISTEN)
    page.evaluate("window.reloaded = false")
    return page


def shown(page: Page) -> list[str]:
    return page.evaluate(SHOWN)


def assert_healed(page: Page, counting) -> None:
    """Check that lines still arrive, and that each is there once and in order, without a reload."""
    before = len(shown(page))
    assert eventually(lambda: len(shown(page)) > before + 10, timeout_s=60)
    expect(page.locator("#log-state")).to_have_attribute("data-state", "live")
    expect(page.locator("#connection")).to_be_hidden()
    texts = counting.stop()
    page.get_by_text("Log complete").wait_for()
    assert shown(page) == texts
    assert page.evaluate("window.reloaded") is False


def test_lines_arrive_while_one_watches_and_the_page_is_not_loaded_again(page, counting):
    assert_healed(page, counting)
    assert "lost" not in page.evaluate("window.said")


def test_a_killed_web_server_is_reported_and_no_line_is_lost_or_doubled(
    page, counting, living, faults
):
    living.portal.kill("web")
    assert eventually(lambda: "lost" in page.evaluate("window.said"))
    living.portal.wait_until_ready(60)
    assert_healed(page, counting)
    faults.forgive_unreachable()


def test_a_browser_that_goes_offline_says_so_and_catches_up_when_it_is_back(page, counting, faults):
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_contain_text("offline")
    expect(page.locator("#log-state")).to_have_attribute("data-state", "lost")
    page.context.set_offline(False)
    assert_healed(page, counting)
    faults.forgive_unreachable()


def test_a_server_that_falls_silent_is_taken_for_lost_and_then_for_back(
    people, counting, living, faults
):
    page = people("mia")
    page.clock.install()
    page.goto(f"/rl/jobs/{counting.id}")
    page.get_by_text("line 20", exact=True).wait_for()
    page.evaluate("window.reloaded = false")
    web = living.portal.pids()["web"]
    os.kill(web, signal.SIGSTOP)
    try:
        page.clock.fast_forward(60_000)
        expect(page.locator("#connection")).to_be_visible()
    finally:
        os.kill(web, signal.SIGCONT)
    assert eventually(lambda: page.clock.run_for(1000) or len(shown(page)) > 60, timeout_s=60)
    assert_healed(page, counting)
    faults.forgive_unreachable()


def test_without_redis_lines_still_arrive_each_once_and_in_order(page, counting, living, faults):
    living.portal.kill("redis")
    before = len(shown(page))
    assert eventually(lambda: len(shown(page)) > before + 10, timeout_s=60)
    living.portal.wait_until_ready(60)
    assert_healed(page, counting)
    faults.forgive_unreachable()


def test_the_loss_is_shown_on_every_tab_and_the_head_recovers_too(page, counting, living, faults):
    page.get_by_role("tab", name="Events").click()
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_be_visible()
    counting.stop()
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator("#job-status")).to_contain_text("Succeeded")
    faults.forgive_unreachable()


def test_the_table_says_that_it_lost_the_connection_and_shows_the_news_when_it_is_back(
    people, living, counting, faults
):
    page = people("moe")
    page.goto("/rl/jobs")
    row = page.locator(f"#job-{counting.id}")
    expect(row).to_contain_text("Running")
    page.locator("#live-state[data-state=on]").wait_for()
    living.portal.kill("web")
    page.locator("#live-state[data-state=lost]").wait_for()
    living.portal.wait_until_ready(60)
    counting.stop()
    expect(row).to_contain_text("Succeeded")
    page.locator("#live-state[data-state=on]").wait_for()
    faults.forgive_unreachable()
