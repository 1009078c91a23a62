"""The portal's own log: one JSON object a line on standard error.

Lines of users never go here, and no secret does: the formatter removes from every line those
that it can recognize, such as the one in the address of a one-time sign-in link.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime, timezone
from typing import Any

from jobs.audit.request_context import current_request

# What every LogRecord has; anything beyond was given as `extra` and belongs into the line.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

# Django's whole request with its headers; uvicorn's message once more, with escape codes.
UNWANTED = ("request", "color_message")
# Tokens, which begin alike; what follows Bearer; one-time links, also within another URL. A repr
# or a URL may have written what is before a word as an escape.
_SECRETS = re.compile(
    r"""((?:\b|(?<=\\[nrtfv])|(?<=%[0-9a-f]{2}))(?:mp[agjt]_|bearer(?:\s|%20|\+)+)"""
    r"""|(?:/|%(?:25)*2f)sign-in(?:/|%(?:25)*2f)+once(?:/|%(?:25)*2f)+)[^\s"'\\/?#&@,;]+""",
    re.IGNORECASE,
)
# A password may have any sign. Without one, a colon may be before a port or in an IPv6 address.
_TO_LAST_AT = re.compile(r'(?<![^\s"])[^\s"]+@')
_PASSWORD = re.compile(r'(\w://(?!\[)[^\s/:@"]*:)(?:(?<=/:)|(?!\d+[/?#])).+@\Z')


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, `request_id`, then the call's extras: `action` and ids.

    `request_id` is the X-Request-ID of the request for which the code runs, if there is one.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line of JSON; what JSON can't hold is shown as its repr."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, tz=timezone.utc).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        request_id = getattr(getattr(record, "request", None), "request_id", "")
        if request_id := request_id or current_request().request_id:
            line["request_id"] = request_id
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        for key in UNWANTED:
            line.pop(key, None)
        if record.exc_info and record.exc_info[1]:
            line["exception"] = self._exception(record)
        return json.dumps(_without_secrets(line))

    def _exception(self, record: logging.LogRecord) -> str:
        """Return the traceback of an error; for a warning or less, only its last line."""
        if record.levelno < logging.ERROR and record.exc_info and record.exc_info[1]:
            return f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        return self.formatException(record.exc_info) if record.exc_info else ""


def _without_secrets(value: object) -> object:
    """Return a value for JSON, with the secrets removed from each string: before it is escaped."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {_text_without_secrets(str(k)): _without_secrets(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in value]
    return _text_without_secrets(value if isinstance(value, str) else repr(value))


def _text_without_secrets(text: str) -> str:
    text = _TO_LAST_AT.sub(lambda word: _PASSWORD.sub(r"\1***@", word[0]), text)
    return _SECRETS.sub(r"\1***", text)


def logging_config(level: str) -> dict[str, Any]:
    """Return Django's LOGGING: everything from `level` on to standard error, as JSON."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            # A line for each task would drown the log: beat sends several a second.
            "celery": {"level": "WARNING"},
            "websockets": {"level": "WARNING"},
            "uvicorn.access": {"level": "WARNING"},
        },
    }
