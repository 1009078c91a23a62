"""All figures of logs: `make bench NAME=logs`. Each part is a program of its own as well."""

from __future__ import annotations

import subprocess
import sys

from bench.own_portal import CHECKOUT

PARTS = ("ingest", "follow", "reading")


def main() -> int:
    """Run the parts that are named, or all; the number of those that failed."""
    parts = sys.argv[1:] or PARTS
    commands = [[sys.executable, "-m", f"bench.logs.{part}"] for part in parts]
    done = [subprocess.run(command, check=False, cwd=CHECKOUT) for command in commands]
    return sum(each.returncode != 0 for each in done)


if __name__ == "__main__":
    sys.exit(main())
