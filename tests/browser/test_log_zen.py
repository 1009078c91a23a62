"""Only the log, in the full window."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility import LOOKS, assert_fine
from tests.browser.test_log_folds import job, opened, say  # noqa: F401 - fixtures


@pytest.mark.feature("P3.2")
def test_z_shows_only_the_log_and_escape_brings_the_page_back(page, job, say):  # noqa: F811
    say(*[f"step {number}" for number in range(300)])
    opened(page, job)
    page.keyboard.press("z")
    expect(page).to_have_url(re.compile(r"\?zen=1$"))
    expect(page.get_by_role("banner")).to_be_hidden()
    expect(page.get_by_role("navigation", name="Breadcrumb")).to_be_hidden()
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    height = page.evaluate("document.getElementById('log').clientHeight / innerHeight")
    assert height > 0.85
    # It follows, and finds.
    expect(page.get_by_text("step 299")).to_be_in_viewport()
    say("step 300")
    expect(page.get_by_text("step 300")).to_be_in_viewport()
    page.keyboard.press("/")
    page.keyboard.insert_text("step 17")
    expect(page.locator("li.current .t")).to_have_text("step 17")
    expect(page).to_have_url(re.compile(r"zen=1.*find=step"))
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox", name="Find in the log")).to_be_hidden()
    expect(page.get_by_role("banner")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.get_by_role("banner")).to_be_visible()
    expect(page).not_to_have_url(re.compile("zen"))


@pytest.mark.parametrize("look", LOOKS)
def test_an_address_opens_the_log_in_the_full_window(page, job, say, look):  # noqa: F811
    width, scheme = LOOKS[look]
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    say("one line")
    opened(page, job, "?zen=1")
    button = page.get_by_role("button", name="Full window")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("banner")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    assert_fine(page)
    button.click()
    expect(page.get_by_role("banner")).to_be_visible()
