"""The names of browsers and systems in user agents."""

from __future__ import annotations

from jobs.web.base.browsers import browser_name
from tests.each_case import check_each

LINUX = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"
WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
PHONE = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko)"
MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) AppleWebKit/605.1.15"
NAMES = {
    f"{LINUX} Chrome/120.0.0.0 Safari/537.36": "Chrome 120 on Linux",
    f"{LINUX} HeadlessChrome/120.0.0.0 Safari/537.36": "Chrome 120 on Linux",
    f"{WINDOWS} Chrome/120.0.0.0 Safari/537.36 Edg/121.0.2277.83": "Edge 121 on Windows",
    f"{WINDOWS} Chrome/120.0.0.0 Safari/537.36 OPR/106.0.0.0": "Opera 106 on Windows",
    f"{PHONE} Chrome/119.0.6045.66 Mobile Safari/537.36": "Chrome 119 on Android",
    f"{PHONE} SamsungBrowser/23.0 Chrome/115.0.0.0 Mobile Safari/537.36": (
        "Samsung Internet 23 on Android"
    ),
    f"{MAC} Version/17.1 Safari/605.1.15": "Safari 17 on macOS",
    f"{IPHONE} (KHTML, like Gecko) Version/17.2 Mobile/15E148 Safari/604.1": "Safari 17 on iOS",
    f"{IPHONE} (KHTML, like Gecko) CriOS/120.0.6099.119 Mobile/15E148 Safari/604.1": (
        "Chrome 120 on iOS"
    ),
    "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0": (
        "Firefox 121 on Linux"
    ),
    "curl/8.5.0": "curl/8.5.0",
    "x" * 200: "x" * 60,
    "": "",
}


def test_a_browser_is_named_with_its_version_and_system_and_others_as_they_call_themselves():
    def has_name(user_agent: str) -> None:
        assert browser_name(user_agent) == NAMES[user_agent]

    check_each(NAMES, has_name)
