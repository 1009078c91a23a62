"""Recognition of lines that report an error or a warning: by words that loggers write.

Lines come from any program, so no level is stored with them. Besides words (`ERROR`, `ValueError:`,
`[warning]`) there are the letters of glog and of PyTorch's C++ parts: `E1123 10:15:00.123`.
"""

from __future__ import annotations

# The page uses the same rule for single lines (static/jobs/js/log/errors.js).
ERROR_WORDS = (
    r"\b(?:[a-z]*error|[a-z]*exception|fatal|critical|panic)\b"
    r"|traceback \(most recent|::error|\b[EF]\d{3,8} \d\d:\d\d:"
)
_WARNING_WORDS = r"\b(?:[a-z]*warning|warn)\b|::warning|\bW\d{3,8} \d\d:\d\d:"

# Level -> RE2 pattern, whatever the case, of the lines of that level or a graver one.
PATTERNS = {"error": ERROR_WORDS, "warning": f"{ERROR_WORDS}|{_WARNING_WORDS}"}
