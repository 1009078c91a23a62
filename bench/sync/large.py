"""One changed block of a large file: `python -m bench.sync --large-gib 5`, which needs 30 GB."""

from __future__ import annotations

import time
from pathlib import Path

from bench.measure import NoPeer, Peer, report, say
from bench.sync import rsync
from bench.sync.nodes import Laptop, running_nodes
from monarch_client.runner.code.manifest import BLOCK_BYTES

_BLOCKS_PER_GIB = 1024**3 // BLOCK_BYTES
_NUMBER_BYTES = 8
_NOT_COUNTED = NoPeer("rsync cuts files into blocks of other sizes")


def write_file(path: Path, gib: int) -> None:
    """Write a sparse file whose blocks all differ."""
    with path.open("wb") as file:
        for number in range(gib * _BLOCKS_PER_GIB):
            file.seek(number * BLOCK_BYTES)
            file.write(number.to_bytes(_NUMBER_BYTES, "big"))
        file.truncate(gib * 1024**3)


def change_one_block(path: Path) -> None:
    """Change the block in the middle of a file."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // BLOCK_BYTES // 2 * BLOCK_BYTES)
        file.write(b"\xff" * _NUMBER_BYTES)


def measure(folder: Path, gib: int) -> None:
    """Measure a file of so many GiB on one node, and rsync after it. SystemExit: more is sent."""
    code = folder / "large"
    code.mkdir()
    path = code / "weights"
    write_file(path, gib)
    with running_nodes(folder, 1) as certificates, rsync.daemon(folder, 1):
        laptop = Laptop(code, certificates)
        began_at = time.perf_counter()
        laptop.sync()
        say(f"{gib} GiB: the first copy took {time.perf_counter() - began_at:.1f} s")
        say(f"rsync: the first copy took {rsync.copy_to_each(code, 1):.1f} s")
        change_one_block(path)
        began_at = time.perf_counter()
        sent = laptop.sync()
        took = time.perf_counter() - began_at
        copied = rsync.copy_to_each(code, 1)
        laptop.close()
    if sent.sent_bytes != laptop.changed_bytes:
        raise SystemExit(f"bench.sync: {sent.sent_bytes:,} bytes were sent for one block")
    say(f"{gib} GiB: scanning the folder took {laptop.scans[-1]:.1f} s of it")
    report("sync_large_file_s", took, "s", peer=Peer(f"{rsync.version()} to the node", copied))
    report("sync_large_file_sent_mib", sent.sent_bytes / 1024**2, "MiB", peer=_NOT_COUNTED)
