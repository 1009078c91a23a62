"""Times on pages: in the browser's zone until the person chooses one, with and without scripts."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from playwright.sync_api import Page, expect

from jobs.models import Schedule
from tests.browser.visits import sign_in
from tests.factories import make_schedule, make_token

EVENING = datetime(2030, 1, 1, 20, 0, tzinfo=timezone.utc)
ABROAD = {"timezone_id": "Asia/Tokyo", "locale": "en-US"}


def texts(page: Page) -> list[str]:
    """Return the texts of the absolute times of a page."""
    script = "all => all.map((one) => one.textContent)"
    return page.locator("time:is([data-day], [data-slot], [data-clock])").evaluate_all(script)


def test_times_follow_the_browser_until_the_account_says_otherwise(
    visitors, address, faults, project, ada
):
    make_token(ada, expires_at=EVENING)
    make_schedule(project, cron="30 20 * * *", zone="UTC", owner=ada, next_at=EVENING)
    page = visitors.open(address, **ABROAD)
    sign_in(page)
    page.goto("/settings/tokens")
    time = page.locator("time[data-day]")
    expect(time).to_have_text("Jan 2, 2030")
    title = re.compile(r"5:00:00 AM Asia/Tokyo · 2030-01-01 20:00:00 UTC · in \d+ d")
    expect(time).to_have_attribute("title", title)

    page.goto("/settings/time")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("Hours").select_option("24")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".notes")).to_contain_text("Times are shown as you chose.")
    page.goto("/settings/tokens")
    expect(time).to_have_text("Jan 1, 2030")
    expect(time).to_have_attribute("title", re.compile("21:00:00 Europe/Berlin"))
    page.goto("/rl/schedules")
    shown = texts(page)
    assert shown[0] == "Tue, Jan 1, 2030, 21:00"
    cookies = page.context.cookies()

    # The server alone writes the same.
    plain = visitors.open(address, java_script_enabled=False)
    plain.context.add_cookies(cookies)
    plain.goto("/rl/schedules")
    assert texts(plain) == shown


def test_a_time_that_comes_twice_differs_by_its_offset_with_and_without_scripts(
    visitors, address, faults, project, ada
):
    zones = {
        "Europe/Berlin": (datetime(2030, 10, 27, 1, tzinfo=timezone.utc), "02:30"),
        "America/New_York": (datetime(2030, 11, 3, 6, tzinfo=timezone.utc), "01:30"),
        "Australia/Lord_Howe": (datetime(2030, 4, 6, 15, tzinfo=timezone.utc), "01:30"),
    }
    for zone, (change, twice) in zones.items():
        Schedule.objects.all().delete()
        for minutes in (-61, -30, -1, 0, 15, 30, 61):
            next_at = change + timedelta(minutes=minutes)
            make_schedule(
                project,
                name=f"at{minutes}",
                cron="0 0 * * *",
                zone=zone,
                owner=ada,
                next_at=next_at,
            )
        ada.time_zone, ada.hour_format = zone, "24"
        ada.save()
        page, plain = (
            visitors.open(address, java_script_enabled=has_script) for has_script in (True, False)
        )
        for each in (page, plain):
            sign_in(each)
            each.goto("/rl/schedules")
        assert texts(page) == texts(plain)
        shown = [text for text in texts(page) if "2030" in text]
        assert len(set(shown)) == 7
        assert sum(f"{twice} UTC" in text for text in shown) == 2


def test_a_form_of_a_schedule_shows_the_meaning_and_times_of_what_is_typed(page, project):
    page.goto("/rl/new-schedule")
    page.get_by_label("Cron expression").fill("0 9 1 * 1")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    preview = page.locator("#schedule-times")
    expect(preview).to_contain_text("At 9:00 AM, on day 1 of the month or on Monday, Europe/Berlin")
    expect(preview.locator("time")).to_have_count(3)
    cron = page.get_by_label("Cron expression")
    cron.fill("0 9")
    expect(page.locator(".field", has=cron)).to_contain_text("has five fields")
    expect(preview.locator("time")).to_have_count(0)


def test_a_wrong_time_of_a_schedule_is_reported_below_its_field_while_it_is_typed(page, project):
    page.goto("/rl/new-schedule")
    cron, zone = page.get_by_label("Cron expression"), page.get_by_label("Time zone")
    cron.fill("0 3 31 2 *")
    expect(page.locator(".field", has=cron).locator(".error")).to_contain_text("never happens")
    expect(cron).to_have_attribute("aria-invalid", "true")
    cron.fill("@daily")
    expect(page.locator(".field .error")).to_have_count(0)
    expect(cron).to_have_attribute("aria-invalid", "false")
    zone.fill("Mars/Base")
    expect(page.locator(".field", has=zone).locator(".error")).to_contain_text("no time zone")
    expect(cron).to_have_attribute("aria-invalid", "false")
