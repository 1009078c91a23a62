"""The settings of the process that serves a node's streams, which the runner writes for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.base.small_files import write_private
from monarch_client.runner.code_sync.keeping import PortalAddress
from monarch_client.runner.code_sync.node_code import CodeSettings

if TYPE_CHECKING:
    from pathlib import Path


class ShellSettings(NamedTuple):
    """The directory and environment of shells, and the file that interactive ones read."""

    cwd: str
    env: dict[str, str]
    startup_file: str


class StreamSettings(NamedTuple):
    """All that the process needs. `addresses` are the nodes' by rank; `shells`, how they start."""

    rank: int
    addresses: list[str]
    port: int
    certificates: str
    code: CodeSettings
    shells: ShellSettings


def write_settings(file: Path, settings: StreamSettings) -> None:
    """Write the settings to a file that only this user reads: they may contain secrets."""
    write_private(file, json.dumps(settings._asdict()))


def read_settings(file: Path) -> StreamSettings:
    """Return the settings that `write_settings` wrote."""
    raw = json.loads(file.read_text(encoding="utf-8"))
    code = CodeSettings(*raw["code"])
    raw["code"] = code._replace(portal=PortalAddress(*code.portal))
    raw["shells"] = ShellSettings(*raw["shells"])
    return StreamSettings(**raw)
