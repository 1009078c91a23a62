"""Connect to the process on the cluster that makes the calls."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from monarch_client.gateway.proxies.meshes import HostMeshProxy
from monarch_client.gateway.proxies.session import Dial, ProxySession
from monarch_client.runner.scripts.mportal_proxies.shapes import Shape

AWAY_LIMIT_S = 300.0
_BUFFER = 1 << 20


class MeshesProxy(Mapping[str, HostMeshProxy]):
    """A job's meshes by name: `meshes.trainers` or `meshes["trainers"]`.

    A context manager: its end is the end of the session and of what the session started.
    """

    def __init__(self, session: ProxySession) -> None:
        self._session = session
        self._meshes = {
            name: HostMeshProxy(session, mesh["id"], Shape.dense(mesh["sizes"]))
            for name, mesh in session.open().items()
        }

    def __getitem__(self, name: str) -> HostMeshProxy:
        return self._meshes[name]

    def __getattr__(self, name: str) -> HostMeshProxy:
        """Return a mesh by its name."""
        if name.startswith("_") or name not in self._meshes:
            names = ", ".join(sorted(self.__dict__.get("_meshes", ())))
            raise AttributeError(f"no mesh is called {name!r}; this job has: {names}")
        return self._meshes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._meshes)

    def __len__(self) -> int:
        return len(self._meshes)

    def __dir__(self) -> list[str]:
        """List the attributes, and the meshes among them."""
        return [*super().__dir__(), *self._meshes]

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def lose(self, error: Exception) -> None:
        """End the session with an error, which all futures and later calls raise."""
        self._session.lose(error)

    def __enter__(self) -> MeshesProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def connect_proxies(
    address: str | Dial,
    *,
    certificates: Path | None = None,
    away_limit_s: float = AWAY_LIMIT_S,
    pickle: bool = False,
    pickle_results: bool = False,
) -> MeshesProxy:
    """Connect to `unix:PATH` or `tcp:HOST:PORT`, and return the job's meshes.

    `certificates`: a directory with leaf.crt, leaf.key and ca.crt, for mutual TLS.
    `pickle`: send arguments that are not data as pickles, which only your own process on the
    cluster loads. `pickle_results`: load pickles from the cluster, which may then run code here.
    """
    session = ProxySession(
        address if callable(address) else _dial(address, certificates),
        away_limit_s=away_limit_s,
        pickle_arguments=pickle,
        pickle_results=pickle_results,
    )
    return MeshesProxy(session)


def _dial(address: str, certificates: Path | None) -> Dial:
    kind, _, where = address.partition(":")
    host, _, port = where.rpartition(":")

    async def dial() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # The leaf is renewed in place: each connection reads the files again.
        tls = _context(certificates) if certificates else None
        name = (host or "127.0.0.1") if tls else None
        if kind == "unix":
            return await asyncio.open_unix_connection(
                where, ssl=tls, server_hostname=name, limit=_BUFFER
            )
        return await asyncio.open_connection(
            host, int(port), ssl=tls, server_hostname=name, limit=_BUFFER
        )

    return dial


def _context(certificates: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(certificates / "leaf.crt", certificates / "leaf.key")
    context.load_verify_locations(certificates / "ca.crt")
    return context
