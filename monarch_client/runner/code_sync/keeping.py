"""Keep the current code in the portal, so that a recovered attempt starts with it.

A thread sends each new tree as a tar.gz, at most one in ten seconds and less often if that takes
long, and tries again until the portal has it. A note names the tree that the portal has.
"""

from __future__ import annotations

import gzip
import http.client
import io
import json
import tarfile
import tempfile
import threading
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from monarch_client.runner.base.retry import Retry
from monarch_client.runner.base.small_files import write_note
from monarch_client.runner.code.errors import BlockMissingError, CodeError
from monarch_client.runner.code.manifest import File, Folder
from monarch_client.runner.code.trees import Trees
from monarch_client.runner.delivery.portal_address import open_connection, portal_url
from monarch_client.runner.vocabulary.limits import MAX_ARCHIVE_BYTES, MAX_ARCHIVE_MEMBERS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO, Callable, Iterator

    from monarch_client.runner.code.store import Store

_EVERY_S = 10.0
# A sending of a large tree is followed by a pause of so many times its length.
_PAUSE_SHARE = 5.0
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.5, 30.0
_TIMEOUT_S = 60.0
_OK = 200
# The portal refuses this code, or all of the attempt: no repetition helps.
_FINAL = {400, 403, 404, 410, 413, 422}
_FILE_MODE, _PROGRAM_MODE, _FOLDER_MODE = 0o644, 0o755, 0o755


class _LaterError(Exception):
    """Code that is not kept now, but may be later; the message contains the reason."""


class PortalAddress(NamedTuple):
    """The portal of an attempt, with the attempt's token."""

    url: str
    file: str | None
    token: str
    attempt_id: int


class Keeper:
    """The sender of trees to the portal.

    `problem` is why the last one is not kept yet, or never will be; or "". `note` is the file that
    names the tree that the portal has. `on_result` is called in the thread after each attempt.
    """

    def __init__(
        self, portal: PortalAddress, store: Store, note: Path, on_result: Callable[[], object]
    ) -> None:
        self.problem = ""
        self._on_result = on_result
        self._tried = ""
        self._portal = portal
        self._store = store
        self._note = note
        # The last tree that the portal has, or has refused.
        self.kept = _text_of(note)
        self._wanted = ""
        self._news = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, tree: str) -> None:
        """Send a tree soon, in place of an earlier one."""
        self._wanted = tree
        self._news.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="keep code")
            self._thread.start()

    def has_result(self, tree: str) -> bool:
        """Whether `problem` is about a tree, or a later one takes its place."""
        return tree in {self._tried, self.kept} or tree != self._wanted

    def close(self) -> None:
        """Send nothing more."""
        self._closed.set()
        self._news.set()

    def _run(self) -> None:
        retry = Retry(_FIRST_PAUSE_S, _LAST_PAUSE_S)
        while True:
            self._news.wait()
            self._news.clear()
            if self._closed.is_set():
                return
            tree = self._wanted
            if tree == self.kept:
                continue
            began_at = time.monotonic()
            try:
                self.problem = self._send(tree)
            except _LaterError as error:
                self.problem = f"{error} (the head node tries again)"
                self._note_result(tree)
                self._news.set()
                self._closed.wait(retry.next_pause_s())
            else:
                self.kept = tree
                if not self.problem:
                    write_note(self._note, tree)
                self._note_result(tree)
                retry.succeeded()
                self._closed.wait(pause_after(time.monotonic() - began_at))

    def _note_result(self, tree: str) -> None:
        self._tried = tree
        self._on_result()

    def _send(self, tree: str) -> str:
        """Send a tree; return why the portal never keeps it. _LaterError: it may later."""
        try:
            with tempfile.TemporaryFile() as file:
                pack(self._store, tree, file)
                return self._put(tree, file)
        except BlockMissingError as error:
            # A program has damaged it; the next sync of the same code sends it again.
            raise _LaterError(str(error)) from error
        except CodeError as error:
            return str(error)
        except OSError as error:
            why = error.strerror or error
            raise _LaterError(f"the head node cannot pack it: {why}") from error

    def _put(self, tree: str, file: IO[bytes]) -> str:
        try:
            return self._answer(tree, file)
        except (OSError, http.client.HTTPException) as error:
            raise _LaterError(f"the portal does not answer: {error!r}") from error

    def _answer(self, tree: str, file: IO[bytes]) -> str:
        size = file.tell()
        file.seek(0)
        portal = self._portal
        url = portal_url(portal.url, portal.file)
        connection = open_connection(url, portal.token, _TIMEOUT_S)
        try:
            path = f"{urlsplit(url).path}/api/v1/attempts/{portal.attempt_id}/code?tree={tree}"
            headers = {
                "Authorization": f"Bearer {portal.token}",
                "Content-Type": "application/gzip",
                "Content-Length": str(size),
            }
            connection.request("PUT", path, file, headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status == _OK:
            return ""
        if response.status in _FINAL:
            return _detail(body)
        raise OSError(f"HTTP {response.status}")


def pause_after(took_s: float) -> float:
    """Return the seconds between the sending of a tree, which took so long, and the next one."""
    return max(_EVERY_S, took_s * _PAUSE_SHARE)


def _text_of(note: Path) -> str:
    try:
        return note.read_text()
    except OSError:
        return ""


def limit_problem(trees: Trees, tree: str) -> str:
    """Return why a tree is above the limits of uploads; "" if it is not."""
    summary = trees.check(tree)
    if summary.entries <= MAX_ARCHIVE_MEMBERS and summary.size_bytes <= MAX_ARCHIVE_BYTES:
        return ""
    return (
        f"it has more than {MAX_ARCHIVE_MEMBERS:,} files and folders, or "
        f"{MAX_ARCHIVE_BYTES // 1024**2:,} MiB"
    )


def pack(store: Store, tree: str, file: IO[bytes]) -> None:
    """Write a tree as a tar.gz that the portal takes as an upload. CodeError: it is too large."""
    # Those of the node are for its own thread.
    trees = Trees(store)
    if problem := limit_problem(trees, tree):
        raise CodeError(problem)
    packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=1, mtime=0)
    with packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add_folder(tar, trees, store, tree, "")


def _add_folder(tar: tarfile.TarFile, trees: Trees, store: Store, folder: str, above: str) -> None:
    for name, entry in sorted(trees.entries(folder).items()):
        info = tarfile.TarInfo(above + name)
        if isinstance(entry, Folder):
            info.type, info.mode = tarfile.DIRTYPE, _FOLDER_MODE
            tar.addfile(info)
            _add_folder(tar, trees, store, entry.digest, f"{above}{name}/")
        elif isinstance(entry, File):
            info.size = entry.size
            info.mode = _PROGRAM_MODE if entry.is_executable else _FILE_MODE
            tar.addfile(info, _Content(store, entry.blocks))
        else:
            info.type, info.linkname = tarfile.SYMTYPE, entry.target
            tar.addfile(info)


class _Content(io.RawIOBase):
    """The content of a file, read block by block."""

    def __init__(self, store: Store, blocks: tuple[str, ...]) -> None:
        super().__init__()
        self._blocks: Iterator[bytes] = map(store.read, blocks)
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, fewer only at the end."""
        pieces = [self._rest]
        length = len(self._rest)
        while size < 0 or length < size:
            block = next(self._blocks, None)
            if block is None:
                break
            pieces.append(block)
            length += len(block)
        found = b"".join(pieces)
        end = len(found) if size < 0 else size
        self._rest = found[end:]
        return found[:end]


def _detail(body: bytes) -> str:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, LookupError, TypeError):
        return "the portal refuses it"
