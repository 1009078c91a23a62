"""The arguments of a RemoteJob, checked before anything is contacted. Imports no monarch."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypedDict

from monarch_client.attaching.profile import CERTIFICATES

Reach = Literal["auto", "direct", "forward"]
Selector = str | Mapping[str, str]
DEFAULT_PORT = 26600
LAST_PORT = 65535
DEFAULT_MESH = "workers"
# As Monarch prints it: a channel's address, perhaps behind the id of the worker's service.
_ADDRESS = re.compile(
    r"(?:(?P<service>[^@\s]+)@)?(?:(?P<scheme>tcp|tls)://)?"
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(?::(?P<port>\d+))?"
)


class RemoteOptions(TypedDict, total=False):
    """The keyword arguments of a RemoteJob; see docs/reference/remote-job.md."""

    name: str | None
    namespace: str
    monarch_port: int
    sync_dirs: Sequence[str] | None
    meshes: Mapping[str, int] | None
    certificates: str | os.PathLike[str] | None
    ready_timeout_s: float
    reach: Reach
    project: str | None


@dataclass(frozen=True)
class Worker:
    """A worker that runs: its address in Monarch's form, and its host and port.

    `name` is what people call it; `pod` is "" if it is none.
    """

    address: str
    host: str
    port: int
    name: str
    pod: str = ""

    @classmethod
    def at(cls, text: str, port: int, scheme: str) -> Worker:
        """Parse an address of `hosts`, with defaults for its port and scheme."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise ValueError(
                f"hosts: {text!r} is no address. Write HOST, HOST:PORT, tls://HOST:PORT, or a "
                "worker's service address as Monarch prints it."
            )
        given = match["port"]
        chosen = int(given) if given else port
        if not 1 <= chosen <= LAST_PORT:
            raise ValueError(f"hosts: the port of {text!r} is not within 1 to {LAST_PORT}")
        channel = f"{match['scheme'] or scheme}://{match['host']}:{chosen}"
        service = match["service"]
        address = f"{service}@{channel}" if service else channel
        return cls(address, match["host"].strip("[]"), chosen, f"{match['host']}:{chosen}")

    @property
    def channel(self) -> str:
        """The address without the service's id."""
        return self.address.rpartition("@")[2]

    @property
    def scheme(self) -> str:
        """The kind of the channel: tcp or tls."""
        return self.channel.partition("://")[0]


@dataclass(frozen=True)
class RemoteRequest:
    """A checked request. ValueError and TypeError of `of` name the argument."""

    hosts: tuple[Worker, ...] = ()
    selector: str = ""
    name: str = field(default_factory=lambda: f"monarch-{secrets.token_hex(4)}")
    namespace: str = "default"
    monarch_port: int = DEFAULT_PORT
    meshes: dict[str, int] = field(default_factory=dict)
    certificates: Path | None = None
    ready_timeout_s: float = 300.0
    reach: Reach = "auto"
    sync_dirs: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, selector: Selector | None, hosts: Sequence[str] | None, options: RemoteOptions
    ) -> RemoteRequest:
        """Make it from a user's arguments."""
        given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        given["sync_dirs"] = _sync_dirs(given.get("sync_dirs", ()), selector, hosts)
        known = {each.name for each in fields(cls)} - {"hosts", "selector"}
        if unknown := sorted(given.keys() - known):
            raise TypeError(f"RemoteJob takes no {', '.join(unknown)}")
        if "certificates" in given:
            given["certificates"] = _folder(given["certificates"])
        port = given.get("monarch_port", DEFAULT_PORT)
        if not 1 <= port <= LAST_PORT:
            raise ValueError(f"monarch_port {port} is not within 1 to {LAST_PORT}")
        if given.get("reach", "auto") not in ("auto", "direct", "forward"):
            raise ValueError(f"reach {given['reach']!r} is none of auto, direct, forward")
        given["meshes"] = _meshes(given.get("meshes", {}))
        scheme = "tls" if given.get("certificates") else "tcp"
        workers = _workers(hosts, port, scheme)
        request = cls(workers, _selector(selector), **given)
        if workers:
            request.deal(workers)
        return request

    @property
    def size(self) -> int:
        """The number of workers that all meshes need; 0 if all that are found are used."""
        return sum(self.meshes.values())

    @property
    def scheme(self) -> str:
        """The kind of the workers' channels, unless an address names another one."""
        return "tls" if self.certificates else "tcp"

    def deal(self, workers: Sequence[Worker]) -> dict[str, list[str]]:
        """Return the addresses of each mesh: meshes take the workers in order."""
        if not self.meshes:
            return {DEFAULT_MESH: [each.address for each in workers]}
        if len(workers) != self.size:
            raise ValueError(f"meshes need {self.size} workers, and there are {len(workers)}")
        rest = iter(workers)
        return {name: [next(rest).address for _ in range(n)] for name, n in self.meshes.items()}


def exactly_one(**sources: object) -> None:
    """Refuse arguments that name no source of workers, or several."""
    named = [name for name, value in sources.items() if value is not None]
    if len(named) != 1:
        choices = ", ".join(sources)
        found = " and ".join(named) if named else "none of them"
        raise ValueError(f"RemoteJob takes exactly one of {choices}; got {found}.")


def refuse_for_compute(options: RemoteOptions) -> None:
    """Refuse options that say where workers are: with `compute` the portal decides."""
    wrong = [
        name
        for name in ("namespace", "monarch_port", "certificates", "reach", "ready_timeout_s")
        if options.get(name) is not None
    ]
    if wrong:
        raise ValueError(
            f"{', '.join(wrong)}: not with compute, whose machines the portal chooses. Set infra "
            "in compute."
        )


def _sync_dirs(
    given: Sequence[str], selector: Selector | None, hosts: Sequence[str] | None
) -> tuple[str, ...]:
    if not given:
        return ()
    if selector is not None or hosts is not None:
        raise ValueError(
            "sync_dirs is for jobs of a portal (compute): other workers import modules from their "
            "own disk. Use a shared folder or an image; classes of the program's main file travel "
            "by themselves."
        )
    if isinstance(given, str | os.PathLike):
        raise TypeError("sync_dirs is a list of folders")
    for each in given:
        if not Path(each).expanduser().is_dir():
            raise ValueError(f"sync_dirs: there is no folder at {each}")
    return tuple(os.fspath(each) for each in given)


def _folder(given: str | os.PathLike[str]) -> Path:
    folder = Path(given).expanduser().absolute()
    for name in CERTIFICATES.values():
        if not (folder / name).is_file():
            raise ValueError(f"certificates: {folder} has no {name}")
    return folder


def _meshes(given: Mapping[str, int]) -> dict[str, int]:
    for name, size in given.items():
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"mesh {name!r}: a mesh is an attribute, so its name must be one")
        if not isinstance(size, int) or size < 1:  # type: ignore[redundant-expr]
            raise ValueError(f"mesh {name!r}: {size!r} is not a number of hosts")
    return dict(given)


def _workers(hosts: Sequence[str] | None, port: int, scheme: str) -> tuple[Worker, ...]:
    if hosts is None:
        return ()
    if isinstance(hosts, str):
        raise TypeError("hosts is a list of addresses")
    workers = tuple(Worker.at(each, port, scheme) for each in hosts)
    if not workers:
        raise ValueError("hosts is empty: name at least one worker")
    twice = {each.name for each in workers if [w.name for w in workers].count(each.name) > 1}
    if twice:
        raise ValueError(f"hosts: {', '.join(sorted(twice))} is there twice")
    return workers


def _selector(given: Selector | None) -> str:
    if given is None:
        return ""
    if isinstance(given, Mapping):
        given = ",".join(f"{key}={value}" for key, value in given.items())
    if not given.strip():
        raise ValueError("selector is empty: it would match every pod of the namespace")
    return given
