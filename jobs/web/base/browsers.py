"""The names of a browser and its system, as its user agent claims them. Pure."""

from __future__ import annotations

import re

# The first that fits counts: most browsers also claim to be those that come later.
_BROWSERS = (
    ("Edge", r"Edg(?:e|A|iOS)?/(\d+)"),
    ("Opera", r"OPR/(\d+)"),
    ("Samsung Internet", r"SamsungBrowser/(\d+)"),
    ("Firefox", r"(?:Firefox|FxiOS)/(\d+)"),
    ("Chrome", r"(?:HeadlessChrome|Chrome|CriOS)/(\d+)"),
    ("Safari", r"Version/(\d+)\S* (?:Mobile/\S+ )?Safari/"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iOS", "iPhone|iPod"),
    ("iPadOS", "iPad"),
    ("Windows", "Windows"),
    ("ChromeOS", "CrOS"),
    ("macOS", "Macintosh"),
    ("Linux", "Linux|X11"),
)
_MOST_SHOWN = 60


def browser_name(user_agent: str) -> str:
    """Return a name such as `Chrome 120 on Linux`; the begin of what is no known browser."""
    for name, pattern in _BROWSERS:
        if found := re.search(pattern, user_agent):
            return f"{name} {found[1]}{_system_in(user_agent)}"
    return user_agent[:_MOST_SHOWN]


def _system_in(user_agent: str) -> str:
    for name, pattern in _SYSTEMS:
        if re.search(pattern, user_agent):
            return f" on {name}"
    return ""
