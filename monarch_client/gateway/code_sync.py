"""Keep the code of a job equal to a folder of this machine, through the streams of a session."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from monarch_client.errors import ArchiveError
from monarch_client.gateway.linked_session import LinkedSession
from monarch_client.gateway.node_stream import NodeStream, NodeStreamError, open_node_stream
from monarch_client.sync.merging import Folder, FolderSet
from monarch_client.sync.scanning import ChangedMeanwhileError, Snapshot
from monarch_client.sync.sending import (
    SILENCE_S,
    CodeSender,
    OnProgress,
    Sent,
    StreamLostError,
)

_TRIES = 5
_PAUSE_S = 1.0


@dataclass(frozen=True)
class SyncResult:
    """The result of a sync: all `ranks` have the folder as it was, whose name is `tree`.

    `changed` are the paths that differ from the last sync of this program, or all. `late` has the
    reasons of ranks that were lost in the middle; they switch as soon as they are back. `unkept` is
    why a recovered attempt would start with older code, or "".
    """

    tree: str
    changed: tuple[str, ...]
    files: int
    sent_bytes: int
    ranks: int
    late: dict[int, str]
    seconds: float
    unkept: str = ""


class CodeSync:
    """The code of some folders in the job of a session. Not for several threads at once."""

    def __init__(
        self,
        session: LinkedSession[Any],
        folders: Folder | Sequence[Folder],
        on_progress: OnProgress = lambda _progress: None,
    ) -> None:
        self.folders = FolderSet(folders)
        self._session = session
        self._on_progress = on_progress
        self._stream: NodeStream | None = None
        self._last: Snapshot | None = None
        # The tree of which it is not known whether the portal keeps it.
        self._keeping = ""
        # A scan that `is_changed` has made and `run` has not sent.
        self._unsent: Snapshot | None = None
        # What the last scan of `run` has found.
        self._scanned = self._problem = ""

    def run(self) -> SyncResult:
        """Send what changed, and return once all nodes have switched to it.

        ArchiveError: something in the folder cannot travel. SyncError, NodeStreamError: the nodes
        keep the code that they have.
        """
        started_at = time.monotonic()
        snapshot, sent = self._sent()
        changed = tuple(snapshot.changes_since(self._last))
        self._last = snapshot
        self._keeping = snapshot.tree if sent.is_keeping else ""
        took_s = time.monotonic() - started_at
        return SyncResult(
            tree=snapshot.tree,
            changed=changed,
            files=sent.files,
            sent_bytes=sent.sent_bytes,
            ranks=sent.ranks,
            late=sent.late,
            seconds=took_s,
            unkept=sent.unkept,
        )

    def is_changed(self) -> bool:
        """Whether the folder differs from what `run` has found last. If so, call `run` at once.

        It sends what this scan has found. Also if the folder cannot travel, which `run` reports.
        """
        try:
            snapshot = self.folders.scan()
        except ArchiveError as error:
            return error.message != self._problem
        if snapshot.tree == self._scanned:
            return False
        self._unsent = snapshot
        return True

    @property
    def is_keeping(self) -> bool:
        """Whether the portal, which may refuse the code, has not answered yet."""
        return bool(self._keeping)

    def await_kept(self) -> str:
        """Return why the portal does not keep the code of the last `run`, or "", once it answers.

        It is "" as well if the connection is lost: the next `run` reports it.
        """
        tree, self._keeping = self._keeping, ""
        try:
            return self._sender().await_kept(tree) if tree else ""
        except (StreamLostError, NodeStreamError):
            self.close()
            return ""

    def close(self) -> None:
        """Close the stream to the head node."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _sent(self) -> tuple[Snapshot, Sent]:
        """Scan and send, again if a file changes meanwhile or the connection is lost."""
        tries = 0
        while True:
            tries += 1
            snapshot = self._scan()
            try:
                return snapshot, self._sender().send(snapshot)
            except ChangedMeanwhileError:
                if tries == _TRIES:
                    raise
            except (StreamLostError, NodeStreamError):
                self.close()
                if tries == _TRIES:
                    raise
                time.sleep(_PAUSE_S)
            except BaseException:
                self.close()
                raise

    def _scan(self) -> Snapshot:
        snapshot, self._unsent = self._unsent, None
        try:
            snapshot = snapshot or self.folders.scan()
        except ArchiveError as error:
            self._problem = error.message
            raise
        self._scanned, self._problem = snapshot.tree, ""
        return snapshot

    def _sender(self) -> CodeSender:
        if self._stream is None:
            self._stream = open_node_stream(self._session, 0, "code")
            self._stream.socket.settimeout(SILENCE_S)
        return CodeSender(self._stream.file, self._stream.socket.sendall, self._on_progress)
