"""Signing in by link or password, and signing out."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.real.people import PASSWORD


def sign_in(page, name, password):
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_link_signs_in_once_and_says_so_when_it_is_used_up(people, living, faults):
    link = living.portal.manage("sign_in_link", "--user", "mia").stdout.strip()
    page = people.nobody()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/rl")
    expect(page.get_by_label("Account: mia")).to_be_visible()
    other = people.nobody()
    other.goto(link)
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("alert")).to_be_visible()
    faults.expect("410")
    other.get_by_role("link", name="Sign in with a password instead").click()
    other.wait_for_url("**/sign-in")


def test_a_first_link_offers_a_password_that_then_works(people, living):
    link = living.portal.manage("add_user", "nia").stdout.strip()
    page = people.nobody()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Choose a password").wait_for()
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the new password").fill(PASSWORD)
    page.get_by_role("button", name="Set password").click()
    expect(
        page.get_by_role("heading", name="You are not a member of any project yet")
    ).to_be_visible()
    again = people.nobody()
    again.goto("/sign-in")
    sign_in(again, "nia", PASSWORD)
    expect(
        again.get_by_role("heading", name="You are not a member of any project yet")
    ).to_be_visible()


def test_a_wrong_password_says_so_and_the_right_one_leads_to_the_page_requested(people):
    page = people.nobody()
    page.goto("/rl/members")
    page.wait_for_url("**/sign-in?next=/rl/members")
    sign_in(page, "moe", "not the password")
    expect(page.get_by_role("alert")).to_contain_text("user name or the password is wrong")
    expect(page.get_by_label("Username")).to_have_value("moe")
    expect(page.get_by_label("Password")).to_be_focused()
    sign_in(page, "moe", PASSWORD)
    page.wait_for_url("**/rl/members")


def test_after_signing_out_the_back_button_shows_no_job(people, living):
    living.submit("mia", "name: private-name\nrun: echo\n")
    page = people.nobody()
    page.goto("/sign-in")
    sign_in(page, "mia", PASSWORD)
    page.wait_for_url("**/rl")
    page.get_by_role("link", name="private-name").first.wait_for()
    page.get_by_label("Account: mia").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    page.go_back()
    page.wait_for_url(re.compile("/sign-in"))
    expect(page.get_by_text("private-name")).to_have_count(0)
