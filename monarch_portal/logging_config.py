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
# Tokens, which begin alike; what follows Bearer; one-time links.
_SECRETS = re.compile(r"(\bmp[agjt]_|\bbearer +|/sign-in/once/+)[^\s\"'\\/?#&@,;]+", re.IGNORECASE)
_PASSWORDS = re.compile(r"(\w://[^\s/:@\"]*:)[^\s/@\"]+@")


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
        text = json.dumps(line, default=repr)
        return _PASSWORDS.sub(r"\1***@", _SECRETS.sub(r"\1***", text))

    def _exception(self, record: logging.LogRecord) -> str:
        """Return the traceback of an error; for a warning or less, only its last line."""
        if record.levelno < logging.ERROR and record.exc_info and record.exc_info[1]:
            return f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        return self.formatException(record.exc_info) if record.exc_info else ""


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
