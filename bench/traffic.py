"""The network traffic of a page."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page


class Traffic:
    """The requests of a page that its browser's caches could not answer, and their bytes."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0
        self._urls: dict[str, str] = {}
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._request)
        session.on("Network.requestServedFromCache", self._cached)
        session.on("Network.responseReceived", self._response)
        session.on("Network.dataReceived", self._data)
        session.send("Network.enable")

    @property
    def requests(self) -> list[str]:
        """The addresses that were requested."""
        return list(self._urls.values())

    def clear(self) -> None:
        """Forget what was counted so far."""
        self._urls.clear()
        self.bytes = 0

    def _request(self, event: dict[str, Any]) -> None:
        self._urls[event["requestId"]] = event["request"]["url"]

    def _cached(self, event: dict[str, Any]) -> None:
        self._urls.pop(event["requestId"], None)

    def _response(self, event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            self._cached(event)

    def _data(self, event: dict[str, Any]) -> None:
        self.bytes += event["encodedDataLength"]
