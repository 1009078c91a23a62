"""Recognition of lines that Monarch prints about itself in every process: no program wrote them.

They are stored as they come. The page and `mportal logs` fold them, and they are no evidence of how
a program ended. None of them reports an error.
"""

from __future__ import annotations

import re

# At the start of a line. The page matches it as well, so it is a pattern of JavaScript, too.
# A process that writes its first line in two pieces has two lines in the log.
OWN_LINE = (
    r"^(?:Monarch internal logs are being written to "
    r"|/\S*/monarch_log\.log; execution id \S+$"
    r"|Mesh admin server listening on https?://\S+$"
    r"|  - (?:Root node|Mesh tree|API docs|TUI): +(?:curl|buck2) "
    r"| +cargo run -p \w+_admin_tui)"
)
_OWN_LINE = re.compile(OWN_LINE)


def is_own_line(text: str) -> bool:
    """Whether Monarch itself printed this line, about where its logs or its mesh admin are."""
    return _OWN_LINE.match(text) is not None
