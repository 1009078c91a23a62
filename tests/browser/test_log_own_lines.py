"""Lines that Monarch printed about itself fold; nothing else does."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.test_log_folds import job, opened, say  # noqa: F401 - fixtures

OWN = "Monarch internal logs are being written to /tmp/x.log; execution id x_{}"


@pytest.mark.feature("P3.2")
def test_runs_of_monarch_s_own_lines_fold_and_errors_stay_visible(page, job, say):  # noqa: F811
    say("begin", OWN.format(1), OWN.format(2), "ValueError: nan", OWN.format(3), "end")
    opened(page, job)
    rows = page.locator("#log-lines li:visible")
    expect(rows).to_have_count(5)
    folds = page.get_by_role("button", name="Monarch's own output")
    assert [each.get_attribute("data-count") for each in folds.all()] == ["2 lines", "1 line"]
    expect(page.get_by_text("ValueError: nan")).to_be_visible()
    expect(page.get_by_text("execution id x_1")).to_be_hidden()
    folds.first.click()
    expect(folds.first).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_text("execution id x_1")).to_be_visible()
    expect(page.get_by_text("execution id x_2")).to_be_visible()
    expect(page.get_by_text("execution id x_3")).to_be_hidden()
    folds.first.click()
    expect(page.get_by_text("execution id x_1")).to_be_hidden()
    # A run that goes on is one row, whatever comes later.
    say(OWN.format(4), OWN.format(5))
    expect(folds.nth(2)).to_have_attribute("data-count", "2 lines")


def test_an_address_and_a_match_open_the_run_they_are_in(page, job, say):  # noqa: F811
    say("begin", OWN.format(1), OWN.format(2), "between", OWN.format(3))
    opened(page, job, "#A1-L3")
    expect(page.get_by_text("execution id x_2")).to_be_visible()
    expect(page.get_by_text("execution id x_3")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.insert_text("x_3")
    expect(page.locator("li.current mark")).to_have_text("x_3")
    expect(page.get_by_text("execution id x_3")).to_be_visible()
