"""The terminal of a node in a real browser: what is typed, what is shown, and its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.real.people import PASSWORD
from tests.waiting import eventually

WORD = b"81818"


def is_running() -> bool:
    files = (entry / "cmdline" for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return any(WORD in arguments_in(file) for file in files)


def arguments_in(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.fixture
def job(living):
    """Start a job of two nodes in a project that allows laptops."""
    with living.client("ada") as client:
        assert client.patch("/api/v1/projects/rl", json={"laptops_may_attach": True}).is_success
    job = living.submit("mia", "name: shells\nnum_nodes: 2\nrun: sleep 300\n")
    living.wait(job, "RUNNING")
    return job


@pytest.mark.feature("S3.4")
def test_a_terminal_types_and_shows_and_ends_with_its_page(people, job):
    page = people("mia")
    page.goto(f"/rl/jobs/{job}/nodes")
    page.get_by_role("link", name="Terminal on node 1").click()
    shown = page.locator(".xterm-rows")
    expect(shown).to_contain_text(f"[job {job} node 1]", timeout=20_000)
    expect(page.locator("#terminal-state")).to_be_hidden()
    page.keyboard.type("echo rank=$MPORTAL_RANK; printf '\\033[38;2;1;200;3mgreen\\033[0m\\n'\n")
    expect(shown).to_contain_text("rank=1")
    green = shown.locator("span", has_text="green").last
    expect(green).to_have_css("color", "rgb(1, 200, 3)")
    page.set_viewport_size({"width": 390, "height": 800})
    page.keyboard.type("stty size\n")
    columns = page.evaluate("document.querySelectorAll('.xterm-rows > div').length")
    expect(shown).to_contain_text(f"{columns} ")
    page.keyboard.type(f"sleep {WORD.decode()}\n")
    assert eventually(is_running)
    page.goto("/rl/jobs")
    assert eventually(lambda: not is_running(), timeout_s=30)


def test_the_end_of_a_shell_and_a_refusal_are_shown_in_words(people, living, job, faults):
    page = people("mia")
    page.goto(f"/rl/jobs/{job}/terminal")
    expect(page.locator(".xterm-rows")).to_contain_text("node 0", timeout=20_000)
    page.keyboard.type("exit 7\n")
    state = page.locator("#terminal-state")
    expect(state).to_contain_text("The shell has ended with exit code 7.")
    living.end_jobs()
    living.wait(job, "CANCELLED")
    page.get_by_role("button", name="Open again").click()
    expect(state).to_contain_text("shells attach to running jobs only")
    other = people("moe")
    other.goto(f"/rl/jobs/{job}/terminal")
    expect(other.locator("main")).to_contain_text("You may not attach programs to others' jobs")
    faults.expect("403")


def test_a_terminal_ends_within_seconds_when_its_user_loses_the_role(people, living, job):
    page = people("mia")
    page.goto(f"/rl/jobs/{job}/terminal")
    expect(page.locator(".xterm-rows")).to_contain_text("node 0", timeout=20_000)
    with living.client("ada") as client:
        path = "/api/v1/projects/rl/members/mia"
        assert client.put(path, json={"role": "viewer"}).is_success
        try:
            state = page.locator("#terminal-state")
            expect(state).to_contain_text("this takes the role", timeout=15_000)
        finally:
            assert client.put(path, json={"role": "member"}).is_success


def test_the_programs_of_a_terminal_end_with_the_sign_out_of_its_browser(people, job):
    page = people.nobody()
    page.goto(f"/sign-in?next=/rl/jobs/{job}/terminal")
    page.get_by_label("Username").fill("mia")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.locator(".xterm-rows")).to_contain_text("node 0", timeout=20_000)
    page.keyboard.type(f"sleep {WORD.decode()}\n")
    assert eventually(is_running)
    other = page.context.new_page()
    other.goto("/rl/jobs")
    other.get_by_label("Account: mia").click()
    other.get_by_role("button", name="Sign out").click()
    assert eventually(lambda: not is_running(), timeout_s=20)
