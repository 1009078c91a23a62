"""The code editor of a page, as a person uses it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

_PASTE = """(content, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  const options = { clipboardData, bubbles: true, cancelable: true };
  content.dispatchEvent(new ClipboardEvent("paste", options));
}"""


class CodeEditor:
    """The editor of a page, which comes with the focus.

    The hidden text area is the field that the page sends.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.content = page.locator(".cm-content")
        self.open()

    def open(self) -> None:
        """Wait for the editor, again after each load of its page."""
        self.page.locator("#source, .cm-content").locator("visible=true").focus()
        self.content.wait_for()

    @property
    def text(self) -> str:
        """The whole text."""
        return self.page.locator("#source").input_value()

    def fill(self, text: str) -> None:
        """Replace the whole text by pasting."""
        self.open()
        self.content.focus()
        self.page.keyboard.press("Control+a")
        self.content.evaluate(_PASTE, text)
        self.expect(text)

    def press(self, key: str) -> None:
        """Press a key in the editor."""
        self.content.press(key)

    def type_after(self, words: str, typed: str) -> None:
        """Type at the end of the line that contains `words`."""
        self.page.locator(".cm-line", has_text=words).first.click()
        self.page.keyboard.press("End")
        self.page.keyboard.type(typed)

    def expect(self, text: str | re.Pattern[str]) -> None:
        """Wait until this is the text."""
        expect(self.page.locator("#source")).to_have_value(text)
