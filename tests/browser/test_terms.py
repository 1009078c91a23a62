"""Terms of the glossary on pages: a click, a tap or the keyboard opens what they mean."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.visits import PHONE, sign_in


def test_a_term_opens_by_keyboard_and_closes_with_escape(page, project):
    page.goto("/rl/jobs/new")
    meaning = page.locator("#term-gang")
    expect(meaning).to_be_hidden()
    page.get_by_role("button", name="gang", exact=True).focus()
    page.keyboard.press("Enter")
    expect(meaning).to_be_visible()
    expect(meaning).to_contain_text("All nodes of a job")
    page.keyboard.press("Escape")
    expect(meaning).to_be_hidden()


def test_a_term_opens_by_a_tap_within_the_width_of_a_phone(visitors, address, faults, project, ada):
    page = visitors.open(address, viewport=PHONE, has_touch=True, is_mobile=True)
    sign_in(page)
    page.goto("/rl/jobs/new")
    page.get_by_role("button", name="driver", exact=True).tap()
    meaning = page.locator("#term-driver")
    expect(meaning).to_be_visible()
    box = meaning.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
