"""Browsers of visitors, each with cookies of its own, and their complaints."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Response, ViewportSize

DESKTOP = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=844)
# What a browser writes down about an address that it could not reach.
UNREACHABLE = "net::ERR_"
# A wait for something that a loaded machine takes its time for.
PATIENCE_MS = 20_000
PASSWORD = "correct horse battery"


class Complaints(list[str]):
    """Errors of scripts, refused content, failed requests: none is allowed unless expected."""

    def expect(self, words: str) -> None:
        """Remove the one complaint that contains `words`; there must be exactly one."""
        found = [one for one in self if words in one]
        assert len(found) == 1, list(self)
        self.remove(found[0])

    def forgive(self, words: str) -> None:
        """Remove all complaints that contain `words`, however many: they are as they should be."""
        self[:] = [one for one in self if words not in one]

    def forgive_unreachable(self) -> None:
        """Remove the complaints that only report that the portal was unreachable.

        It was away on purpose.
        """
        self[:] = [one for one in self if UNREACHABLE not in one]


class Visitors:
    """A factory of browsers that share nothing with each other."""

    def __init__(self, chromium: Browser, complaints: Complaints) -> None:
        self._chromium = chromium
        self._complaints = complaints
        self._contexts: list[BrowserContext] = []

    def open(self, address: str, *, cookie: dict[str, Any] | None = None, **overrides: Any) -> Page:
        """Open a page in a fresh browser; `cookie` signs it in."""
        options: Any = {"viewport": DESKTOP, "reduced_motion": "reduce", **overrides}
        context = self._chromium.new_context(base_url=address, **options)
        context.set_default_timeout(PATIENCE_MS)
        if cookie:
            signed: Any = {**cookie, "url": address}
            context.add_cookies([signed])
        self._contexts.append(context)
        context.on("page", self._watch)
        return context.new_page()

    def close(self) -> None:
        """Close them all."""
        for context in self._contexts:
            context.close()

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self._complaints.append(str(error)))
        page.on("console", self._hear)
        page.on("response", self._answered)

    def _hear(self, message: Any) -> None:
        if message.type == "error":
            place = message.location.get("url", "")
            self._complaints.append(f"{message.text} {place}".strip())

    def _answered(self, response: Response) -> None:
        if response.status >= 500:
            self._complaints.append(f"{response.status} from {response.url}")


def sign_in(page: Page, username: str = "ada") -> None:
    """Sign a user with PASSWORD in, and wait for the overview of project `rl`."""
    page.goto("/sign-in")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/rl")
