"""Send a snapshot to the head node of a job: only the blocks that it lacks.

The messages are those of `monarch_client.runner.code_sync.messages`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from monarch_client.errors import ClientError
from monarch_client.runner.code_sync import messages
from monarch_client.sync.scanning import BlockReader, ChangedMeanwhileError, Snapshot

# The head node sends a line every few seconds while it is at work.
SILENCE_S = 60.0
# Blocks of small files are sent together.
BATCH_BYTES = 256 * 1024


class SyncError(ClientError):
    """The code could not be switched."""

    code = "sync_failed"


class StreamLostError(SyncError):
    """The connection to the head node was lost. Nothing has switched, or everything."""

    code = "sync_interrupted"


@dataclass(frozen=True)
class SyncProgress:
    """The progress of a sync: files and bytes that travel, then the ranks that have them."""

    files: int = 0
    all_files: int = 0
    sent_bytes: int = 0
    all_bytes: int = 0
    ready_ranks: int = 0
    all_ranks: int = 0


@dataclass(frozen=True)
class Sent:
    """The files and bytes that a sync has sent, and the number of ranks that have switched.

    `late` are the reasons of the others by rank; `unkept` is why a recovered attempt would not
    start with the code, or "". `is_keeping`: that is not known; `CodeSender.await_kept` waits.
    """

    files: int
    sent_bytes: int
    ranks: int
    late: dict[int, str]
    unkept: str
    is_keeping: bool = False


OnProgress = Callable[[SyncProgress], None]


class CodeSender:
    """A sender on one stream: `file` is read, `send` writes.

    `on_progress` is called for some blocks, for each rank that is ready, and every few seconds.
    """

    def __init__(
        self, file: BinaryIO, send: Callable[[bytes], Any], on_progress: OnProgress
    ) -> None:
        self._file = file
        self._send = send
        self._on_progress = on_progress

    def send(self, snapshot: Snapshot) -> Sent:
        """Send a snapshot, and return once all ranks have switched to it.

        ChangedMeanwhileError: a file has changed since the scan; the stream can take another
        snapshot. SyncError: no rank has switched, and the stream is of no use any more.
        """
        try:
            return self._exchange(snapshot)
        except TimeoutError as error:
            raise StreamLostError("The head node does not answer. Sync again.") from error
        except (OSError, EOFError) as error:
            raise StreamLostError("The connection to the head node was lost.") from error

    def await_kept(self, tree: str) -> str:
        """Return why the portal does not keep a tree that was sent, or "", once that is known.

        StreamLostError: the head node does not report it.
        """
        try:
            self._send(messages.pack(kept=tree))
            while True:
                message = messages.unpack(self._file.readline(messages.MAX_LINE_BYTES + 1))
                if "kept" in message:
                    return str(message.get("unkept", ""))
        except (OSError, EOFError) as error:
            raise StreamLostError("The connection to the head node was lost.") from error

    def _exchange(self, snapshot: Snapshot) -> Sent:
        outgoing = _Outgoing(snapshot)
        folders = list(snapshot.manifests)
        is_few = len(folders) <= messages.MOST_FOLDERS
        self._send(messages.pack(sync=snapshot.tree, folders=folders if is_few else []))
        while True:
            message = messages.unpack(self._file.readline(messages.MAX_LINE_BYTES + 1))
            if "need" in message:
                outgoing.add(message["need"])
                self._send_blocks(outgoing, message["need"])
            elif "switching" in message:
                ready, ranks = int(message["ready"]), int(message["of"])
                outgoing.progress = replace(outgoing.progress, ready_ranks=ready, all_ranks=ranks)
                self._on_progress(outgoing.progress)
            elif "busy" in message:
                self._on_progress(outgoing.progress)
            elif "done" in message:
                done = outgoing.progress
                late = {int(rank): str(why) for rank, why in message.get("late", {}).items()}
                unkept, is_keeping = str(message.get("unkept", "")), bool(message.get("keeping"))
                ranks = int(message["ranks"])
                return Sent(done.files, done.sent_bytes, ranks, late, unkept, is_keeping)
            else:
                raise SyncError(_failure(message))

    def _send_blocks(self, outgoing: _Outgoing, digests: list[str]) -> None:
        waiting: list[bytes] = []
        size = 0
        for digest in digests:
            try:
                content = outgoing.read(digest)
            except ChangedMeanwhileError:
                self._send_together([*waiting, messages.pack(changed=True)])
                self._skip_to_dropped()
                raise
            waiting += (messages.pack(block=digest, size=len(content)), content)
            size += len(content)
            if size >= BATCH_BYTES or digest == digests[-1]:
                self._send_together(waiting)
                self._on_progress(outgoing.progress)
                waiting, size = [], 0

    def _send_together(self, pieces: list[bytes]) -> None:
        try:
            self._send(b"".join(pieces))
        except OSError:
            # It has refused a block before, and says why.
            self._raise_refusal()
            raise

    def _skip_to_dropped(self) -> None:
        while "dropped" not in (message := messages.unpack(self._file.readline())):
            if "failed" in message:
                raise SyncError(_failure(message))

    def _raise_refusal(self) -> None:
        while line := self._file.readline():
            message = messages.unpack(line)
            if "failed" in message:
                raise SyncError(_failure(message))


class _Outgoing:
    """The blocks that the head has requested, and which of their files are complete."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._reader = BlockReader(snapshot)
        self._open: Counter[str] = Counter()
        self.progress = SyncProgress()

    def add(self, digests: list[str]) -> None:
        """Note requested blocks. SyncError: the snapshot has no such block."""
        size = new_files = 0
        for digest in digests:
            try:
                path, length = self._reader.describe(digest)
            except KeyError as error:
                raise SyncError("The head node requested a block that this code lacks.") from error
            size += length
            if path:
                # Counted here: there are as many calls as thousands of blocks.
                new_files += path not in self._open
                self._open[path] += 1
        now = self.progress
        self.progress = replace(
            now,
            all_files=now.all_files + new_files,
            all_bytes=now.all_bytes + size,
        )

    def read(self, digest: str) -> bytes:
        """Return a block that was added. ChangedMeanwhileError."""
        content = self._reader.read(digest)
        path, _ = self._reader.describe(digest)
        if path:
            self._open[path] -= 1
        now = self.progress
        is_complete = bool(path) and not self._open[path]
        self.progress = replace(
            now, files=now.files + is_complete, sent_bytes=now.sent_bytes + len(content)
        )
        return content


def _failure(message: dict[str, Any]) -> str:
    """Return the sentences of a failure, with the reasons of the first ranks."""
    text = str(message.get("failed") or "The head node sent an unknown answer.")
    ranks = message.get("ranks") or {}
    reasons = [f"node {rank}: {reason}" for rank, reason in list(ranks.items())[:5]]
    more = f" And {len(ranks) - 5} more." if len(ranks) > 5 else ""  # noqa: PLR2004
    return f"{text} {'; '.join(reasons)}{more}".strip()
