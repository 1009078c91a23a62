"""Members of a project, and a user's own tokens and password."""

from __future__ import annotations

import httpx
from playwright.sync_api import expect


def test_an_admin_adds_a_member_changes_the_role_and_removes_them(people):
    page = people("ada")
    page.goto("/rl/members")
    page.get_by_label("User name").fill("nobody-at-all")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".field .error")).to_contain_text("nobody-at-all")
    expect(page.get_by_label("User name")).to_have_value("nobody-at-all")
    page.get_by_label("User name").fill("lou")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_label("Role of lou")).to_have_value("member")
    page.get_by_label("Role of lou").select_option("viewer")
    expect(page.get_by_text("lou is now viewer")).to_be_visible()
    page.get_by_role("button", name="Remove lou").click()
    page.get_by_role("button", name="Remove from the project").click()
    expect(page.get_by_text("lou is no longer a member")).to_be_visible()
    expect(page.get_by_label("Role of lou")).to_have_count(0)


def test_the_last_admin_stays_and_learns_why(people):
    page = people("sam")
    page.goto("/other/members")
    page.get_by_label("Role of sam").select_option("viewer")
    expect(page.locator(".note.error")).to_be_visible()
    expect(page.get_by_label("Role of sam")).to_have_value("admin")


def test_a_member_sees_the_members_and_changes_nothing(people):
    page = people("mia")
    page.goto("/rl/members")
    expect(page.get_by_role("row", name="vera")).to_contain_text("Viewer")
    for name in ("Add", "Remove vera"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_a_new_token_is_shown_once_works_and_ends_when_it_is_revoked(people, living):
    page = people("moe")
    page.goto("/settings/tokens")
    page.get_by_label("Name", exact=True).fill("laptop")
    page.get_by_role("button", name="Create token").click()
    secret = page.locator("#new-token").inner_text()
    me = f"{living.url}/api/v1/me"
    headers = {"Authorization": f"Bearer {secret}"}
    assert httpx.get(me, headers=headers).status_code == 200
    page.goto("/settings/tokens")
    expect(page.get_by_text(secret)).to_have_count(0)
    page.get_by_role("button", name="Revoke laptop").click()
    page.get_by_role("button", name="Revoke the token").click()
    expect(page.get_by_text("The token no longer works.")).to_be_visible()
    assert httpx.get(me, headers=headers).status_code == 401


def test_a_reload_after_making_a_token_makes_no_second_one(people):
    page = people("vera")
    page.goto("/settings/tokens")
    page.get_by_label("Name", exact=True).fill("once")
    page.get_by_role("button", name="Create token").click()
    page.locator("#new-token").wait_for()
    page.reload()
    expect(page.get_by_role("button", name="Revoke once")).to_have_count(1)
    expect(page.locator("#new-token")).to_have_count(0)


def test_copy_puts_the_token_on_the_clipboard(people):
    page = people("max")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/settings/tokens")
    page.get_by_label("Name", exact=True).fill("copied")
    page.get_by_role("button", name="Create token").click()
    secret = page.locator("#new-token").inner_text()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied", exact=True)).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret


def test_a_password_that_is_too_simple_says_what_is_wrong(people):
    page = people("lou")
    page.goto("/settings/password")
    page.get_by_label("Current password").fill("not it")
    page.get_by_label("New password", exact=True).fill("12345")
    page.get_by_label("Repeat the new password").fill("12345")
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_text("This is not your current password.")).to_be_visible()
    expect(page.get_by_text("too short")).to_be_visible()
