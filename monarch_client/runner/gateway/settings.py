"""The settings of the gateway's process on the head, which the runner writes for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.base.config import Authority
from monarch_client.runner.base.small_files import write_private
from monarch_client.runner.gateway.proxy_drivers import ProxySettings

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from monarch_client.runner.base.config import AttemptConfig


class HeadSettings(NamedTuple):
    """All that the process needs. `workers` and `nodes` are their hosts and ports by rank.

    `nodes` are the ports of the nodes' streams; a plain job has no `workers`. `certificates` is the
    folder with this node's own.
    """

    portal_url: str
    portal_file: str | None
    token: str
    authority: Authority | None
    # An interpreter that may have the `cryptography` package.
    python: str
    hello: dict[str, Any]
    workers: list[tuple[str, int]]
    nodes: list[tuple[str, int]]
    certificates: str
    # None: there are no workers, or they have no TLS.
    proxies: ProxySettings | None


def settings_of(
    config: AttemptConfig,
    python: str,
    versions: tuple[str, str],
    proxies: ProxySettings | None,
    certificates: Path,
) -> HeadSettings:
    """Return the settings for an attempt whose workers have these versions of Python and Monarch.

    `python` is their interpreter.
    """
    hosts = [(rank, config.address_of(rank)) for rank in config.ranks]
    workers = hosts if config.is_monarch else []
    hello = {
        "op": "hello",
        "attempt": config.attempt_id,
        "python": versions[0],
        "torchmonarch": versions[1],
        "workers": [
            {"rank": rank, "host": host, "address": config.worker_address(rank)}
            for rank, host in workers
        ],
        "nodes": [{"rank": rank, "host": host} for rank, host in hosts],
        "meshes": config.ranks_of_meshes(),
    }
    return HeadSettings(
        portal_url=config.portal_url,
        portal_file=config.portal_file,
        token=config.token,
        authority=config.tls,
        python=python,
        hello=hello,
        workers=[(host, config.port) for _, host in workers],
        nodes=[(host, config.node_port) for _, host in hosts if config.tls is not None],
        certificates=str(certificates),
        proxies=proxies if config.tls is not None else None,
    )


def write_settings(file: Path, settings: HeadSettings) -> None:
    """Write the settings to a file that only this user reads: they contain a token and a key."""
    write_private(file, json.dumps(settings._asdict()))


def read_settings(file: Path) -> HeadSettings:
    """Return the settings that `write_settings` wrote."""
    raw = json.loads(file.read_text(encoding="utf-8"))
    raw["authority"] = Authority(*raw["authority"]) if raw["authority"] else None
    raw["proxies"] = ProxySettings(*raw["proxies"]) if raw["proxies"] else None
    for name in ("workers", "nodes"):
        raw[name] = [(str(host), int(port)) for host, port in raw[name]]
    return HeadSettings(**raw)
