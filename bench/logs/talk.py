"""A program that prints without end, each line with the moment at which it was written.

`python talk.py GO LINES_PER_S` says that it is ready, prints while the file GO exists, and ends
when GO.end exists or their folder does not. It is sent to the nodes, and
needs nothing but the standard library.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

READY = "ready to talk"
_REST = "step 00001200 | loss 2.1234 | grad_norm 0.812 | lr 3.0e-04 | 181234 tokens/s | mem 61.2"
_PAUSE_S = 0.01
_LOOK_S = 0.05


def stamped(at: float) -> str:
    """Return a line of a hundred characters that was written at `at`."""
    return f"at={at:.6f} {_REST[:76]}"


def talk_while(go: Path, lines_per_s: float) -> None:
    """Print at this rate; what is late, as the machine was busy, comes in one piece."""
    written, begin = 0, time.time()
    while go.exists():
        now = time.time()
        due = int((now - begin) * lines_per_s) - written
        sys.stdout.write((stamped(now) + "\n") * due)
        sys.stdout.flush()
        written += due
        time.sleep(_PAUSE_S)


def main() -> None:
    """Print the first line, then lines while the file exists, until the end is requested."""
    go, lines_per_s = Path(sys.argv[1]), float(sys.argv[2])
    end = go.with_name(f"{go.name}.end")
    print(READY, flush=True)
    while go.parent.exists() and not end.exists():
        talk_while(go, lines_per_s)
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    main()
