"""Reading the environment: one function a type, each with a message that names the variable."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from monarch_client.spec.durations import seconds_in

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}


def env_str(name: str, default: str = "") -> str:
    """Return the variable, or `default` if it is not set."""
    return os.environ.get(name, default)


def env_bool(name: str, *, default: bool = False) -> bool:
    """Return True for 1, true, yes, on; False for 0, false, no, off and the empty string."""
    value = os.environ.get(name)
    if value is None:
        return default
    if value.strip().lower() in TRUE:
        return True
    if value.strip().lower() in FALSE:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is neither true nor false.")


def env_int(name: str, default: int) -> int:
    """Return the variable as a whole number."""
    value = os.environ.get(name, "").strip()
    try:
        return int(value) if value else default
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number.") from error


def env_choice(name: str, choices: tuple[str, ...]) -> str:
    """Return the variable, one of `choices`; the first of them if it is not set."""
    value = os.environ.get(name, "").strip().lower() or choices[0]
    if value not in choices:
        raise ImproperlyConfigured(f"{name}={value!r} is none of {', '.join(choices)}.")
    return value


def env_seconds(name: str) -> int | None:
    """Return the seconds of a length such as 12h, 1h30m or 90; None if it is not set."""
    value = os.environ.get(name, "").strip()
    seconds = seconds_in(value)
    if value and not seconds:
        raise ImproperlyConfigured(f"{name}={value!r} is not a length of time, such as 12h.")
    return seconds or None


def env_list(name: str, default: list[str] | None = None) -> list[str]:
    """Return the variable split at commas."""
    value = os.environ.get(name)
    if value is None:
        return list(default or [])
    return [part.strip() for part in value.split(",") if part.strip()]


def env_secret(name: str) -> str:
    """Return the variable, or the content of the file `<name>_FILE`; "" if neither is set."""
    file = os.environ.get(f"{name}_FILE", "")
    if not file:
        return os.environ.get(name, "")
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE={file!r} can't be read: {error}") from error


def database_from_url(url: str) -> dict[str, Any]:
    """Return Django's settings for a `postgresql://user:password@host:port/name?option=value` URL.

    `host` among the options names a directory with the server's Unix socket.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured("DATABASE_URL must begin with postgresql://")
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "monarch_portal.postgresql",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": str(options.pop("host", "") or parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
    }
