"""Match the escape sequences that programs print for terminals.

`static/jobs/js/log/ansi.js` has the same pattern: offsets of matches count displayed text.
"""

from __future__ import annotations

# Colors and moves; strings: titles, links (OSC 8, with the text between two sequences), images;
# choices of characters; single letters.
SEQUENCE = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|[ -/]+[0-~]"
    r"|[@-Z\\^_])"
)
