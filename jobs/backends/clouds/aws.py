"""AWS: profiles of ~/.aws/credentials, each a key pair."""

from __future__ import annotations

import configparser
import io
import re
from collections.abc import Mapping

from jobs.backends.clouds.files import PrivateHome
from jobs.errors import InvalidCloudError

FIELDS = ("file", "profile", "access_key_id", "secret_access_key", "session_token")
_FILE = ".aws/credentials"
_PROFILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# Everything else may run a program (credential_process) or name files of the portal's host.
_ALLOWED = {
    "aws_access_key_id": re.compile(r"[A-Z0-9]{16,128}"),
    "aws_secret_access_key": re.compile(r"[A-Za-z0-9/+=]{16,128}"),
    "aws_session_token": re.compile(r"[A-Za-z0-9/+=]{16,4096}"),
    "region": re.compile(r"[a-z0-9-]{2,32}"),
    "output": re.compile(r"[a-z-]{1,20}"),
}
_RUNS_PROGRAMS = "credential_process"
_PAIR = ("aws_access_key_id", "aws_secret_access_key")


def add(home: PrivateHome, content: Mapping[str, str], allow_exec: bool) -> list[str]:  # noqa: FBT001
    """Store the profiles of a credentials file, or one key pair as a profile."""
    given = _of_file(content["file"]) if content.get("file") else _of_pair(content)
    if not given.sections():
        raise InvalidCloudError("There is no profile in this file: it begins with [default].")
    for profile in given.sections():
        _check(profile, dict(given[profile]), allow_exec=allow_exec)
    there = _parsed(home.read(_FILE), "The credentials file that is there")
    for profile in given.sections():
        there.remove_section(profile)
        there[profile] = dict(given[profile])
    _store(home, there)
    return given.sections()


def remove(home: PrivateHome, name: str) -> bool:
    """Forget a profile."""
    there = _parsed(home.read(_FILE), "The credentials file that is there")
    if not there.remove_section(name):
        return False
    _store(home, there)
    return True


def listed(home: PrivateHome) -> list[tuple[str, str]]:
    """List the profiles, each with the start of its AWS key id."""
    there = _parsed(home.read(_FILE), "The credentials file that is there")
    return [
        (profile, f"key {there[profile].get('aws_access_key_id', '')[:8]}...")
        for profile in there.sections()
    ]


def _store(home: PrivateHome, profiles: configparser.RawConfigParser) -> None:
    if not profiles.sections():
        home.remove(_FILE)
        return
    text = io.StringIO()
    profiles.write(text)
    home.write(_FILE, text.getvalue())


def _of_file(text: str) -> configparser.RawConfigParser:
    return _parsed(text, "The file")


def _of_pair(content: Mapping[str, str]) -> configparser.RawConfigParser:
    made = _parsed("", "")
    pair = {
        "aws_access_key_id": content.get("access_key_id", ""),
        "aws_secret_access_key": content.get("secret_access_key", ""),
        "aws_session_token": content.get("session_token", ""),
    }
    profile = content.get("profile") or "default"
    if not _PROFILE.fullmatch(profile):
        raise InvalidCloudError("A profile's name has letters, digits and . _ - only.")
    made[profile] = {key: value for key, value in pair.items() if value}
    return made


def _parsed(text: str, what: str) -> configparser.RawConfigParser:
    # AWS knows no section whose keys all others have.
    parser = configparser.RawConfigParser(default_section="\0")
    try:
        parser.read_string(text)
    except configparser.Error:
        # Its message quotes the line, and that may hold a key.
        raise InvalidCloudError(f"{what} is not an AWS credentials file.") from None
    return parser


def _check(profile: str, keys: dict[str, str], *, allow_exec: bool) -> None:
    if not _PROFILE.fullmatch(profile):
        raise InvalidCloudError("A profile's name has letters, digits and . _ - only.")
    for key, value in keys.items():
        if key == _RUNS_PROGRAMS:
            _refuse_programs(profile, allow_exec=allow_exec)
        elif key not in _ALLOWED:
            raise InvalidCloudError(
                f"Profile {profile} has the key {key[:40]!r}. A key pair is what the portal takes: "
                f"{', '.join(_ALLOWED)}."
            )
        elif not _ALLOWED[key].fullmatch(value):
            raise InvalidCloudError(f"{key} of profile {profile} does not look like one.")
    missing = [key for key in _PAIR if key not in keys]
    if missing and _RUNS_PROGRAMS not in keys:
        raise InvalidCloudError(f"Profile {profile} lacks {' and '.join(missing)}.")


def _refuse_programs(profile: str, *, allow_exec: bool) -> None:
    if not allow_exec:
        raise InvalidCloudError(
            f"Profile {profile} has credential_process: it would run a program on the portal's "
            "host. Give a key pair, or add it on that host: `manage.py cloud add --allow-exec`."
        )
