"""All figures of logs: `make bench NAME=logs`. Each part is a program of its own as well.

Parts are named first; what follows from the first option on is theirs, as in
`follow --without-ray`. `follow-sky` needs a cluster, and runs only where it is named.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile

from bench.own_portal import CHECKOUT

PARTS = ("ingest", "follow", "reading")
ON_RIG = "follow-sky"


def commands(arguments: Sequence[str]) -> list[list[str]]:
    """List the programs to run, one after the other. ValueError: there is no such part."""
    named = list(takewhile(lambda word: not word.startswith("-"), arguments))
    if unknown := set(named) - {*PARTS, ON_RIG}:
        raise ValueError(f"no such part: {', '.join(sorted(unknown))}")
    options = arguments[len(named) :]
    parts = [part.replace("-", "_") for part in named or PARTS]
    return [[sys.executable, "-m", f"bench.logs.{part}", *options] for part in parts]


def run(command: Sequence[str]) -> int:
    """Run the command and return its exit code.

    A signal that ends this program ends the command too, which stops what it has started.
    """
    process = subprocess.Popen(command, cwd=CHECKOUT)
    # A terminal interrupts both. Killed on the way out, the part would leave all of it behind.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT))
    return process.wait()


def main() -> int:
    """Run the named parts, or all, and return the number of those that failed."""
    failed = 0
    for command in commands(sys.argv[1:]):
        code = run(command)
        failed += code != 0
        if code == -signal.SIGINT:
            break
    return failed


if __name__ == "__main__":
    sys.exit(main())
