"""Code sync: one changed file among 10,000 on all nodes, and the copies that leave its source.

`make bench NAME=sync`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from bench.measure import NoPeer, Peer, figures, median, report, say
from bench.sync import large, rsync
from bench.sync.nodes import Laptop, running_nodes
from bench.sync.simulation import simulate

FOLDERS, FILES, FILE_BYTES = 100, 100, 6500
PAUSE_S = 2.0
NOT_COUNTED = NoPeer("a property of the tree of nodes, whatever the code")


def write_code(folder: Path) -> None:
    """Write 10,000 files with 65 MB."""
    for number in range(FOLDERS):
        below = folder / f"package{number}"
        below.mkdir(parents=True)
        for file in range(FILES):
            (below / f"module{file}.py").write_bytes(os.urandom(FILE_BYTES))


def measure(folder: Path, code: Path, count: int, rounds: int) -> None:
    """Measure so many nodes, alternating with rsync."""
    times, peers, copies = [], [], []
    with running_nodes(folder, count) as certificates, rsync.daemon(folder, count):
        laptop = Laptop(code, certificates)
        began_at = time.perf_counter()
        laptop.sync()
        say(f"{count} nodes: the first copy took {time.perf_counter() - began_at:.1f} s")
        say(f"rsync: the first copies took {rsync.copy_to_all(code, count):.1f} s")
        for number in range(rounds + 1):
            (code / "package7" / "module7.py").write_bytes(os.urandom(FILE_BYTES))
            began_at = time.perf_counter()
            sent = laptop.sync()
            took = time.perf_counter() - began_at
            if sent.ranks != count:
                raise SystemExit(f"bench.sync: only {sent.ranks} of {count} nodes have switched")
            copies.append(sent.sent_bytes / laptop.changed_bytes)
            # Nodes get ready for the next sync, which takes processors that rsync needs.
            time.sleep(PAUSE_S)
            copied = rsync.copy_to_all(code, count)
            # The first round after the copies is slower for both.
            if number:
                times.append(took)
                peers.append(copied)
        (code / "package7" / "module7.py").write_bytes(os.urandom(FILE_BYTES))
        say(f"rsync to one after the other took {rsync.copy_to_each(code, count):.3f} s")
        laptop.close()
    name = f"{rsync.version()} to all nodes at once"
    spread = (min(times), max(times))
    at = "" if count == max(COUNTS) else f"_{count}_nodes"
    report(
        f"sync_one_file_s{at}", median(times), "s", peer=Peer(name, median(peers)), spread=spread
    )
    say(f"{count} nodes: scanning the folder took {median(laptop.scans):.3f} s of it")
    report(f"sync_source_copies{at}", median(copies), "", peer=Peer(name, count))


COUNTS = (2, 4, 8)


def main() -> None:
    """Measure on 2, 4 and 8 nodes, and simulate many."""
    parser = argparse.ArgumentParser(prog="bench.sync", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--nodes", type=int, nargs="*", default=COUNTS)
    parser.add_argument("--simulated", type=int, default=1000)
    parser.add_argument("--large-gib", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, figures():
        code = Path(name, "code")
        write_code(code)
        for count in options.nodes:
            with tempfile.TemporaryDirectory(dir=name) as below:
                measure(Path(below), code, count, options.rounds)
        with tempfile.TemporaryDirectory(dir=name) as below:
            found = simulate(Path(below), options.simulated)
        say(f"simulated: {options.simulated} nodes in {found.seconds:.1f} s, in one process")
        report("sync_simulated_copies_per_node", found.copies, "", peer=NOT_COUNTED)
        report("sync_simulated_depth", found.depth, "", peer=NOT_COUNTED)
        if options.large_gib:
            with tempfile.TemporaryDirectory(dir=name) as below:
                large.measure(Path(below), options.large_gib)


if __name__ == "__main__":
    main()
