"""All figures of the queue: `make bench NAME=schedule`. Each part is a program of its own as well.

Parts are named first (`passes`, `policies`, `lag`); options after them are theirs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile

from bench.own_portal import CHECKOUT

PARTS = ("passes", "policies", "lag")


def commands(arguments: Sequence[str]) -> list[list[str]]:
    """List the programs to run, one after the other. ValueError: there is no such part."""
    named = list(takewhile(lambda word: not word.startswith("-"), arguments))
    if unknown := set(named) - set(PARTS):
        raise ValueError(f"no such part: {', '.join(sorted(unknown))}; there are {PARTS}")
    options = arguments[len(named) :]
    return [[sys.executable, "-m", f"bench.schedule.{part}", *options] for part in named or PARTS]


def main() -> int:
    """Run the named parts, or all, and return the number of those that failed."""
    return sum(
        subprocess.run(command, cwd=CHECKOUT, check=False).returncode != 0
        for command in commands(sys.argv[1:])
    )


if __name__ == "__main__":
    sys.exit(main())
