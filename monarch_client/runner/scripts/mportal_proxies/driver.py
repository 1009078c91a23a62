"""Attach to the job's meshes, listen for the session's client, and end what it started."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import signal
import ssl
import sys
import time
import uuid
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from .channel import VERSION, ChannelError, read_hello, send_hello
from .meshes import Meshes
from .session import Session
from .spill import Spill

if TYPE_CHECKING:
    from typing import Any

_HELLO_S = 10.0
# Of procs, and then of hosts.
_STOP_S = 5.0
_LOOK_EVERY_S = 1.0
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Settings:
    """The command line of the driver."""

    listen: str
    away_limit_s: float
    tls_subject: str
    # For results that wait for their client, beyond what memory keeps.
    folder: str


@dataclass
class Driver:
    """The process: its meshes once they are attached, and the session once a client is there."""

    settings: Settings
    meshes: Meshes = field(default_factory=Meshes)
    hosts: dict[str, Any] = field(default_factory=dict)
    session: Session | None = None
    key: str = ""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.attached = asyncio.ensure_future(self.attach())

    async def attach(self) -> None:
        """Attach to each mesh of the plan; all of its workers answer."""
        from monarch import actor  # noqa: PLC0415 - the process listens meanwhile

        plan = json.loads(Path(os.environ["MPORTAL_RUNTIME_FILE"]).read_text(encoding="utf-8"))
        loop = asyncio.get_running_loop()
        actor.unhandled_fault_hook = lambda failure: loop.call_soon_threadsafe(
            self.report_fault, str(failure.report())
        )
        with contextlib.suppress(RuntimeError):  # the environment has enabled it already
            actor.enable_transport(plan["transport"])
        for number, (name, workers) in enumerate(plan["meshes"].items(), start=1):
            addresses = [worker["address"] for worker in workers]
            mesh = actor.attach_to_workers(
                ca="trust_all_connections", workers=addresses, name=name.replace("-", "_")
            )
            await asyncio.wait_for(mesh.initialized.as_asyncio(), plan["attach_timeout_s"])
            self.hosts[name] = mesh
            self.meshes.add_hosts(-number, mesh, [_host_of(address) for address in addresses])

    def report_fault(self, text: str) -> None:
        """Report a fault of Monarch that no call gets."""
        sys.stderr.write(f"Monarch reported a fault:\n{text}\n")
        if self.session is not None:
            self.session.report_fault(text)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection of the client."""
        try:
            hello = await asyncio.wait_for(read_hello(reader), _HELLO_S)
            refusal = await self._refusal(hello, writer)
            if refusal:
                await send_hello(writer, {"version": VERSION, "refused": refusal})
                return
            session = self._session_for(hello)
            # An older connection may be half open: it ends before the new one is used.
            session.channel.disconnect()
            await send_hello(writer, self._welcome(session))
            await session.channel.run(reader, writer, hello["received"])
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            if isinstance(error, ChannelError):
                sys.stderr.write(f"a connection was refused: {error}\n")
        finally:
            writer.close()

    async def _refusal(self, hello: dict[str, Any], writer: asyncio.StreamWriter) -> str:
        """Return why the client is refused, or ""."""
        expected = self.settings.tls_subject
        if expected and _subject_of(writer) != expected:
            return "the certificate is that of another session"
        key = hello.get("key")
        kinds = (("key", str), ("received", int), ("options", dict))
        is_sound = all(isinstance(hello.get(name, kind()), kind) for name, kind in kinds)
        if not is_sound or not key or not key.isascii():
            return "the hello is malformed"
        if self.key and not hmac.compare_digest(key.encode(), self.key.encode()):
            return "the session belongs to another program"
        if hello.get("driver") not in (None, self.id):
            return "the process on the cluster was restarted, and its procs were stopped"
        try:
            await asyncio.shield(self.attached)
        except Exception as error:  # noqa: BLE001 - the client gets it
            return f"the meshes could not be attached: {error!r}"
        return ""

    def _session_for(self, hello: dict[str, Any]) -> Session:
        if self.session is None:
            self.key = hello["key"]
            options = hello.get("options", {})
            spill = Spill(self.settings.folder)
            self.session = Session(self.meshes, options, self.over.set, spill)
            self._running = asyncio.ensure_future(self.session.run())
        return self.session

    def _welcome(self, session: Session) -> dict[str, Any]:
        meshes = {
            name: {"id": -number, "sizes": dict(mesh.sizes)}
            for number, (name, mesh) in enumerate(self.hosts.items(), start=1)
        }
        return {
            "version": VERSION,
            "driver": self.id,
            "received": session.channel.handled,
            "meshes": meshes,
            "python": "{}.{}.{}".format(*sys.version_info[:3]),
            "torchmonarch": metadata.version("torchmonarch"),
        }

    async def watch(self) -> None:
        """Wait until the session is over: the client has left, or was away too long."""
        seen = time.monotonic()
        while not self.over.is_set():
            session, now = self.session, time.monotonic()
            if session is not None and session.channel.is_connected:
                seen = now
            elif session is not None:
                session.channel.outbox.expire(now)
            if now - seen > self.settings.away_limit_s:
                sys.stderr.write(f"the client was away for {now - seen:.0f} s: its procs end\n")
                return
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.over.wait(), _LOOK_EVERY_S)

    async def stop(self) -> None:
        """Stop what the session started on the hosts; workers stay."""
        if self.session is not None:
            self.session.channel.disconnect()
        # Procs first: those that end with their hosts stay listed there, as if they had died.
        for meshes in (self.meshes.spawned, list(self.hosts.values())):
            stops = [mesh.stop().as_asyncio() for mesh in meshes]
            if stops:
                await asyncio.wait(stops, timeout=_STOP_S)


async def serve(settings: Settings) -> None:
    """Serve the session until it is over, or SIGTERM arrives."""
    driver = Driver(settings)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, driver.over.set)
    server = await _listen(driver)
    await driver.watch()
    server.close()
    driver.attached.cancel()
    await driver.stop()


async def _listen(driver: Driver) -> asyncio.AbstractServer:
    kind, _, address = driver.settings.listen.partition(":")
    context = _tls() if driver.settings.tls_subject else None
    if kind == "unix":
        previous = os.umask(0o177)
        server: asyncio.AbstractServer = await asyncio.start_unix_server(
            driver.accept, address, ssl=context, limit=_BUFFER
        )
        os.umask(previous)
    else:
        host, _, port = address.rpartition(":")
        server = await asyncio.start_server(
            driver.accept, host, int(port), ssl=context, limit=_BUFFER
        )
        address = "{}:{}".format(*server.sockets[0].getsockname()[:2])
    print("listening", f"{kind}:{address}", flush=True)  # noqa: T201
    # What users' modules print later must not fill the pipe, which nothing reads any more.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return server


def _tls() -> ssl.SSLContext:
    """Return the context of the attempt's certificates, which the environment names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(os.environ["HYPERACTOR_TLS_CERT"], os.environ["HYPERACTOR_TLS_KEY"])
    context.load_verify_locations(os.environ["HYPERACTOR_TLS_CA"])
    return context


def _subject_of(writer: asyncio.StreamWriter) -> str:
    """Return the common name of the client's certificate."""
    certificate = writer.get_extra_info("peercert") or {}
    fields = [pair for part in certificate.get("subject", ()) for pair in part]
    return str(dict(fields).get("commonName", ""))


def _host_of(address: str) -> str:
    """Return the host in a worker's address: `service1@tls://10.0.0.5:26600` is on 10.0.0.5."""
    return address.rpartition("//")[2].rpartition(":")[0]
