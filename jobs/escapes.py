"""The escape sequences that programs print for terminals, which nobody reads as text.

`static/jobs/js/log/ansi.js` has the same pattern: places of matches count what the page shows.
"""

from __future__ import annotations

# Colours and moves; strings: titles, links (OSC 8, whose text stands between two of them), images;
# choices of characters; single letters.
SEQUENCE = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|[ -/]+[0-~]"
    r"|[@-Z\\^_])"
)
