"""Slurm: hosts of ~/.slurm/config, each a login node that is reached by ssh with a key."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from jobs.backends.clouds.files import PrivateHome
from jobs.errors import InvalidCloudError

FIELDS = ("name", "host", "user", "port", "key", "proxy_jump")
_FILE = ".slurm/config"
_KEYS = ".slurm/keys"
_HOST_LINE = re.compile(r"(?im)^[ \t]*(?:Host|Match)[ \t=]+(.*?)[ \t]*$")
# None of these can be taken for an option or a pattern of ssh's.
_FORMS = {
    "name": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"), "letters, digits and . _ -"),
    "host": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}"), "a host name or an IP address"),
    "user": (re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}"), "the name of a Unix account"),
    "port": (re.compile(r"[1-9][0-9]{0,4}"), "a number from 1 to 65535"),
    "proxy_jump": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,252}"), "user@host:port"),
}
_LAST_PORT = 65535


def add(home: PrivateHome, content: Mapping[str, str], allow_exec: bool) -> list[str]:  # noqa: FBT001
    """Store a login node under a name, in place of the one of that name."""
    fields = {"port": "22", **{key: value for key, value in content.items() if value}}
    for field, (form, words) in _FORMS.items():
        value = fields.get(field, "")
        if field != "proxy_jump" and not value:
            raise InvalidCloudError(f"A Slurm cluster needs {field}: {words}.", field=field)
        if value and not form.fullmatch(value):
            raise InvalidCloudError(f"{field} must be {words}.", field=field)
    if int(fields["port"]) > _LAST_PORT:
        raise InvalidCloudError("port must be a number from 1 to 65535.", field="port")
    key = _checked_key(fields.get("key", ""))
    blocks = _blocks(home.read(_FILE))
    name = fields["name"]
    # The host points to its key, so the key comes first.
    home.write(f"{_KEYS}/{name}", key)
    blocks[name] = _block(home, fields)
    home.write(_FILE, "\n".join(blocks.values()))
    return [name]


def remove(home: PrivateHome, name: str) -> bool:
    """Forget a login node and its key."""
    blocks = _blocks(home.read(_FILE))
    if name not in blocks or not _FORMS["name"][0].fullmatch(name):
        return False
    del blocks[name]
    if any(block.strip() for block in blocks.values()):
        home.write(_FILE, "\n".join(blocks.values()))
    else:
        home.remove(_FILE)
    home.remove(f"{_KEYS}/{name}")
    return True


def listed(home: PrivateHome) -> list[tuple[str, str]]:
    """List the names of the clusters, each with its login user and host."""
    return [(name, _about(block)) for name, block in _blocks(home.read(_FILE)).items() if name]


def _block(home: PrivateHome, fields: Mapping[str, str]) -> str:
    lines = [
        f"Host {fields['name']}",
        f"  HostName {fields['host']}",
        f"  Port {fields['port']}",
        f"  User {fields['user']}",
        f"  IdentityFile {home.path / _KEYS / fields['name']}",
        "  IdentitiesOnly yes",
    ]
    if fields.get("proxy_jump"):
        lines.append(f"  ProxyJump {fields['proxy_jump']}")
    return "\n".join([*lines, ""])


def _blocks(text: str) -> dict[str, str]:
    """Divide the file at its host lines, verbatim; the text before the first host is under ""."""
    found = list(_HOST_LINE.finditer(text))
    starts = [match.start() for match in found]
    ends = [*starts[1:], len(text)] if starts else []
    blocks = {"": text[: starts[0]] if starts else text}
    for match, start, end in zip(found, starts, ends, strict=True):
        blocks[match[1]] = text[start:end].rstrip("\n") + "\n"
    return {name: block for name, block in blocks.items() if name or block.strip()}


def _about(block: str) -> str:
    words = dict(line.split(None, 1) for line in block.splitlines() if len(line.split(None, 1)) > 1)
    by_lower = {key.lower(): value.strip() for key, value in words.items()}
    port = by_lower.get("port", "22")
    return f"{by_lower.get('user', '')}@{by_lower.get('hostname', '')}:{port}"


def _checked_key(key: str) -> str:
    raw = key.strip().encode() + b"\n"
    if not key.strip():
        raise InvalidCloudError("A Slurm cluster needs a key: a private key without a passphrase.")
    load = (
        serialization.load_ssh_private_key
        if b"OPENSSH PRIVATE KEY" in raw
        else serialization.load_pem_private_key
    )
    try:
        load(raw, password=None)
    except TypeError:
        raise InvalidCloudError("The key has a passphrase; use a key without one.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidCloudError("This is not a private key that ssh can use.") from None
    return raw.decode()
