"""Keeping the portal's own tokens out of stored logs. Users' secrets have no storage here yet."""

from __future__ import annotations

import re

# API tokens and attempts' tokens, by their public prefixes and the shape of what follows.
_TOKEN = re.compile(r"\b(mp[at]_)[A-Za-z0-9_-]{40,64}")


def redacted(text: str) -> str:
    """`text` with every token of the portal's masked, its prefix kept."""
    if "mpa_" not in text and "mpt_" not in text:
        return text
    return _TOKEN.sub(r"\1***", text)
