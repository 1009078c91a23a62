"""Unpins and changes of references, sent in batches by a thread.

They come from the garbage collector, which runs anywhere, also in the midst of a call to the store:
`unpin` and `drop` therefore take no lock and send nothing themselves.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from queue import Empty, SimpleQueue

from monarch_client.context.objects.calls import StoreCalls
from monarch_client.context.objects.errors import ObjectStoreError

# The time in which changes are collected into one batch.
PAUSE_S = 0.002
# When more changes wait, reading an object waits: the thread may be slower than the program.
MOST_WAITING = 2000


class _Batch:
    """A number of changes that are sent together."""

    def __init__(self) -> None:
        self.unpins: Counter[bytes] = Counter()
        self.references: Counter[bytes] = Counter()
        self.flushes: list[threading.Event] = []

    def add(self, change: _Change) -> None:
        """Add one change."""
        kind, subject, count = change
        if isinstance(subject, threading.Event):
            self.flushes.append(subject)
        elif kind == "pin":
            self.unpins[subject] += count
        else:
            self.references[subject] += count


_Change = tuple[str, bytes | threading.Event, int]


class Releases:
    """The changes that one client still has to send."""

    def __init__(self, calls: StoreCalls) -> None:
        self._calls = calls
        self._changes: SimpleQueue[_Change | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._pid = os.getpid()

    def start(self) -> None:
        """Start the thread if it does not run: never called by a collector.

        After a fork the child has none of the parent's pins, and no thread.
        """
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._changes, self._thread = SimpleQueue(), None
            self._starting = threading.Lock()
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._run, name="object-releases", daemon=True
                    )
                    self._thread.start()

    def keep_up(self) -> None:
        """Start the thread, and wait for it if many changes wait: never called by a collector."""
        self.start()
        if self._changes.qsize() > MOST_WAITING:
            self.flush()

    def unpin(self, object_id: bytes, pid: int) -> None:
        """Note that a pin of process `pid` has ended; a forked child does not have it."""
        if pid == os.getpid():
            self._changes.put(("pin", object_id, 1))

    def change_reference(self, object_id: bytes, change: int) -> None:
        """Note that the process has one reference more or less."""
        self._changes.put(("reference", object_id, change))

    def flush(self) -> None:
        """Send all changes that were noted before, and wait for the store's answer."""
        self.start()
        done = threading.Event()
        self._changes.put(("flush", done, 0))
        done.wait()

    def _run(self) -> None:
        while True:
            first = self._changes.get()
            if first is None or not self._send_batch(first):
                return

    def _send_batch(self, first: _Change) -> bool:
        """Send a batch that begins with `first`; return whether others may follow."""
        batch, goes_on = _Batch(), True
        batch.add(first)
        if not batch.flushes:
            threading.Event().wait(PAUSE_S)
        with contextlib.suppress(Empty):
            while (change := self._changes.get_nowait()) is not None:
                batch.add(change)
            goes_on = False
        # A store that has ended needs to know of no release, and errors of counts are its own.
        with contextlib.suppress(ObjectStoreError):
            if batch.references:
                self._calls.change_references(batch.references)
        with contextlib.suppress(ObjectStoreError):
            if batch.unpins:
                self._calls.unpin(batch.unpins)
        for flush in batch.flushes:
            flush.set()
        return goes_on

    def close(self) -> None:
        """Send what is left, and end the thread."""
        if self._thread is not None and self._pid == os.getpid():
            self._changes.put(None)
            self._thread.join()
            self._thread = None
