"""Unpack an upload on a node. The portal has checked the archive; this module checks it again.

The rules are those of `monarch_client.sync.archive`, which needs a newer Python than nodes have.
Nodes may share a file system and unpack the same archive at once: each file appears whole.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import shutil
import subprocess
import tarfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from monarch_client.runner.vocabulary.limits import (
    MAX_ARCHIVE_BYTES,
    MAX_ARCHIVE_MEMBERS,
)
from monarch_client.runner.vocabulary.names import is_ordinary_name, is_ordinary_path, ups_of

if TYPE_CHECKING:
    from monarch_client.runner.base.config import NodeFolder, Upload

_CHUNK_BYTES = 64 * 1024
_SUDO_S = 20.0
_FILE, _FOLDER, _LINK = "file", "folder", "link"
_BROKEN = (
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
)
_numbers = itertools.count()


class UploadError(Exception):
    """A folder of the job that cannot be unpacked here; the message contains the reason."""


def lay_out(upload: Upload, folder: NodeFolder) -> None:
    """Unpack an upload to its target. UploadError if that fails."""
    target = _target_of(upload.target, folder)
    try:
        _make_top(target)
        unpack(upload.archive, target)
    except (OSError, UploadError) as error:
        why = f"the folder for {upload.target} could not be unpacked: {error}"
        raise UploadError(why) from error


def _target_of(target: str, folder: NodeFolder) -> Path:
    if target == "workdir":
        return folder.workdir
    if not target.startswith(("~/", "/")):
        raise UploadError(f"{target} is neither the work directory nor a path from ~/ or /")
    if ".." in target.split("/"):
        raise UploadError(f"{target} contains '..'")
    return Path.home() / target[2:] if target.startswith("~/") else Path(target)


def _make_top(target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
    except PermissionError:
        # Users of cloud images may become root.
        owner = f"{os.getuid()}:{os.getgid()}"
        _as_root("mkdir", "-p", str(target))
        _as_root("chown", owner, str(target))
        # The main loop may have reaped the exit codes: check the result instead.
        if not os.access(str(target), os.W_OK):
            raise


def _as_root(*argv: str) -> None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ["sudo", "-n", *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SUDO_S,
            check=False,
        )


def unpack(archive: Path, target: Path) -> None:
    """Unpack a tar.gz into an existing folder, and replace files in the way.

    UploadError if it is broken or has forbidden content. Nothing is written outside of `target`.
    """
    try:
        with tarfile.open(str(archive), "r:gz") as tar:
            contents = _Contents()
            for info in tar:
                path = _clean(info.name)
                kind = _kind_of(info)
                contents.add(path, kind, info.size if kind is _FILE else 0)
                if kind is _LINK:
                    _check_link(path, info.linkname)
                _place(tar, info, path, target)
            # Read to the end, for gzip's checksum.
            while tar.fileobj.read(_CHUNK_BYTES):
                pass
    except _BROKEN as error:
        raise UploadError(f"{archive.name} is not a whole tar.gz: {error}") from error


def _place(tar: tarfile.TarFile, info: tarfile.TarInfo, path: str, target: Path) -> None:
    is_folder = info.isdir()
    _make_folders(target, path if is_folder else os.path.dirname(path))  # noqa: PTH120
    if is_folder:
        return
    draft = (target / path).with_name(f".mportal-{os.getpid()}-{next(_numbers)}")
    content = tar.extractfile(info) if info.isreg() else None
    try:
        if content is None:
            draft.symlink_to(info.linkname)
        else:
            _write(draft, content, 0o755 if info.mode & 0o100 else 0o644)
        draft.replace(target / path)
    except OSError as error:
        draft.unlink()
        raise UploadError(f"{path} cannot be put in place: {error}") from error


def _write(path: Path, content: IO[bytes], mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(fd, "wb") as file:
        shutil.copyfileobj(content, file, _CHUNK_BYTES)


def _make_folders(target: Path, relative: str) -> None:
    path = target
    for part in filter(None, relative.split("/")):
        path /= part
        if path.is_symlink() or not path.is_dir():
            # Another node may have made the folder by now: remove only what is no folder.
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                path.unlink()
            path.mkdir(mode=0o755, exist_ok=True)


def _clean(name: str) -> str:
    if name.startswith("/") or ".." in name.split("/"):
        raise UploadError(f"{name[:100]!a} is outside of the archive's own folder")
    parts = [part for part in name.split("/") if part not in {"", "."}]
    path = "/".join(parts)
    if not (is_ordinary_path(path) and all(is_ordinary_name(part) for part in parts)):
        raise UploadError(f"{name[:100]!a} is not a name that every node can have")
    return path


def _kind_of(info: tarfile.TarInfo) -> str:
    if info.isdir():
        return _FOLDER
    if info.issym():
        return _LINK
    if info.isreg() and not info.issparse():
        return _FILE
    raise UploadError(f"{info.name[:100]!a} is neither a file, a folder nor a symbolic link")


def _check_link(path: str, target: str) -> None:
    """Check that a link goes up only at its beginning and stays inside the archive's folder."""
    ups = ups_of(target)
    if ups is None or ups > path.count("/") or not is_ordinary_path(target):
        raise UploadError(f"the link {path[:100]!a} leads out of the archive, or may")


class _Contents:
    """The members so far: each is new, and is inside a folder, not behind a link."""

    def __init__(self) -> None:
        self._kinds = {"": _FOLDER}
        self._bytes = 0

    def add(self, path: str, kind: str, size: int) -> None:
        """Add a member. UploadError if it is not allowed."""
        if not path and kind is not _FOLDER:
            raise UploadError("the archive's top is not a folder")
        self._add_folders(os.path.dirname(path))  # noqa: PTH120
        known = self._kinds.get(path)
        if known is not None and not (known is kind is _FOLDER):
            raise UploadError(f"{path[:100]!a} is in the archive twice")
        self._kinds[path] = kind
        self._bytes += size
        if len(self._kinds) - 1 > MAX_ARCHIVE_MEMBERS or self._bytes > MAX_ARCHIVE_BYTES:
            raise UploadError("the archive holds more than the portal takes")

    def _add_folders(self, path: str) -> None:
        missing = []
        while path not in self._kinds:
            missing.append(path)
            path = os.path.dirname(path)  # noqa: PTH120
        if self._kinds[path] is not _FOLDER:
            raise UploadError(f"{path[:100]!a} is no folder, but the archive has files below it")
        for folder in missing:
            self._kinds[folder] = _FOLDER
