"""Archives of every sort, well meant or not."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from monarch_client.sync.archive import pack


def member(name: str, content: bytes = b"", **fields) -> tuple[tarfile.TarInfo, bytes]:
    """Make a member: a file, unless `fields` says otherwise."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = 0o644
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def folder(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.DIRTYPE)


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def tar_gz(*members: tuple[tarfile.TarInfo, bytes], **options) -> io.BytesIO:
    """Make an archive of the members, exactly as they are."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", **options) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    file.seek(0)
    return file


def zipped(content: bytes) -> io.BytesIO:
    """Compress any bytes, as if they were a tar."""
    return io.BytesIO(gzip.compress(content, 1))


def packed(tmp_path: Path, source: Path, name: str = "packed.tar.gz", **options):
    """Pack the folder into an archive in tmp_path."""
    return pack(source, tmp_path / name, **options)


def tree(root: Path) -> dict[str, str]:
    """Map every file to its content, every link to its target, every folder to "/"."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = "/" if path.is_dir() else path.read_text()
    return found
