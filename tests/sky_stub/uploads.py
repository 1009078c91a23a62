"""Folders that a client sends before it launches: zip files in chunks, kept by their content."""

from __future__ import annotations

import os
import shutil
import threading
import zipfile
from pathlib import Path
from typing import Any

_SYMLINK = 0xA


class Uploads:
    """The folders below `<state>/blobs`."""

    def __init__(self, state: Path) -> None:
        self._blobs = state / "blobs"
        self._parts = state / "uploads"
        self._lock = threading.Lock()

    def exists(self, blob: str) -> bool:
        """Whether a folder has arrived completely."""
        return (self._blobs / blob).is_dir()

    def take(self, blob: str, index: int, total: int, data: bytes) -> dict[str, Any]:
        """Store one chunk; the folder exists once all chunks, in any order, have arrived."""
        folder = self._parts / blob
        with self._lock:
            if self.exists(blob):
                return {"status": "completed"}
            folder.mkdir(parents=True, exist_ok=True)
            (folder / str(index)).write_bytes(data)
            missing = [str(each) for each in range(total) if not (folder / str(each)).exists()]
            if missing:
                return {"status": "uploading", "missing_chunks": missing}
            self._unpack(blob, folder, total)
        return {"status": "completed"}

    def _unpack(self, blob: str, folder: Path, total: int) -> None:
        archive, new = folder / "all.zip", folder / "new"
        with archive.open("wb") as whole:
            for index in range(total):
                whole.write((folder / str(index)).read_bytes())
        with zipfile.ZipFile(archive) as zipped:
            for member in zipped.infolist():
                _write(zipped, member, new)
        self._blobs.mkdir(parents=True, exist_ok=True)
        new.rename(self._blobs / blob)
        shutil.rmtree(folder)


def _write(zipped: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> None:
    """Write one member of an archive as SkyPilot does: modes are lost, links are kept."""
    path = folder / os.path.normpath(member.filename).lstrip("/")
    if member.external_attr >> 28 == _SYMLINK:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(zipped.read(member).decode())
    elif member.is_dir():
        path.mkdir(parents=True, exist_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zipped.read(member))
