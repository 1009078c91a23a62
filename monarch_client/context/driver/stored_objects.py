"""The object store of the driver's host, and what the driver does with the objects in it."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from monarch_client.context.ids import holder_of
from monarch_client.context.objects import HostStore, StoreClient, StoreServer

# Of the memory that is free. The rest is for the processes of tasks.
_PART_OF_MEMORY = 0.3
_MEM_AVAILABLE = "MemAvailable:"


class StoredObjects:
    """The values of a context that are too large for messages: none until `open`."""

    def __init__(self) -> None:
        self.store: HostStore | None = None
        self.client: StoreClient | None = None
        self.address = ""
        self._server: StoreServer | None = None

    def open(
        self, limit: int | None = None, spill_directory: str | os.PathLike[str] | None = None
    ) -> None:
        """Make a store on this host, which executors reach at `address`."""
        folder = Path(spill_directory or tempfile.gettempdir())
        self.store = HostStore(limit or _default_limit(), folder)
        self.client = StoreClient.of_store(self.store)
        self.address = f"monarch-objects-{secrets.token_hex(16)}"
        self._server = StoreServer(self.store, self.address)

    def adopt(self, object_id: bytes) -> None:
        """Take over an object from the executor that has stored it."""
        if self.store is not None:
            self.store.adopt(object_id)

    def discard(self, object_id: bytes) -> None:
        """Delete an object; values that were read from it stay usable."""
        if self.store is not None:
            self.store.discard(object_id)

    def executor_ended(self, executor: int) -> None:
        """Delete what an executor has stored and did not report before its end."""
        if self.store is not None:
            self.store.process_ended(holder_of(executor))

    def close(self) -> None:
        """End the store. Values that were read stay usable."""
        if self._server is not None:
            self._server.close()
        if self.client is not None:
            self.client.close()
        if self.store is not None:
            self.store.close()


def _default_limit() -> int:
    """Return a part of the memory that is free on this machine."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    free_kb = int(text.partition(_MEM_AVAILABLE)[2].split()[0])
    return int(free_kb * 1024 * _PART_OF_MEMORY)
