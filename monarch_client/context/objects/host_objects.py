"""The object store of one host with its servers: for the host's processes, and for other hosts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from monarch_client.attaching.folders import PrivateFolder, sweep
from monarch_client.context.objects.client import StoreClient
from monarch_client.context.objects.fetching import Fetcher, Relay
from monarch_client.context.objects.host_store import HostStore
from monarch_client.context.objects.remote_memory import RemoteMemory
from monarch_client.context.objects.server import StoreServer
from monarch_client.context.objects.transfers import TransferServer

# Of the memory that is free. The rest is for the processes of tasks.
_PART_OF_MEMORY = 0.3
_MEM_AVAILABLE = "MemAvailable:"


class HostObjects:
    """The values of one host that are too large for messages."""

    def __init__(
        self, limit: int | None = None, spill_directory: str | os.PathLike[str] | None = None
    ) -> None:
        folder = Path(spill_directory or tempfile.gettempdir())
        self.store = HostStore(limit or _default_limit(), folder)
        self.client = StoreClient.of_store(self.store)
        self._folder: PrivateFolder | None = None
        self._server: StoreServer | None = None
        self._transfers: TransferServer | None = None
        self.fetcher: Fetcher | None = None

    def serve(self) -> StoreServer:
        """Let other processes of this host read and write objects; return the server."""
        if self._server is None:
            sweep()
            self._folder = PrivateFolder(outlives_login=True)
            self._server = StoreServer(self.store, self._folder.path)
        return self._server

    def join_others(
        self, host: str, secret: str, relay: Relay, memory: RemoteMemory | None = None
    ) -> str:
        """Send objects to other hosts, and fetch theirs; return the address for them.

        The address is empty if this host cannot listen at `host`: others use their relay. `memory`
        reads the memory of other hosts that have it as well.
        """
        with suppress(OSError):
            self._transfers = TransferServer(self.store, host, secret, memory)
        address = self._transfers.address if self._transfers else ""
        self.fetcher = Fetcher(self.store, secret, relay, address, memory)
        self.store.fetch = self.fetcher.fetch
        return address

    def set_hosts(self, addresses: Mapping[str, str]) -> None:
        """Replace the addresses of the hosts that this one may fetch from."""
        if self.fetcher is not None:
            self.fetcher.set_hosts(addresses)
        if self._transfers is not None:
            self._transfers.set_hosts(addresses.values())

    def close(self) -> None:
        """End the store. Values that were read stay usable."""
        if self.fetcher is not None:
            self.fetcher.close()
        if self._transfers is not None:
            self._transfers.close()
        if self._server is not None:
            self._server.close()
        if self._folder is not None:
            self._folder.remove()
        self.client.close()
        self.store.close()


def _default_limit() -> int:
    """Return a part of the memory that is free on this machine."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    free_kb = int(text.partition(_MEM_AVAILABLE)[2].split()[0])
    return int(free_kb * 1024 * _PART_OF_MEMORY)
