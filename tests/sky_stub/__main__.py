"""`python -m tests.sky_stub --port N --state DIR`: serves until it is killed."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tests.sky_stub.server import Stub


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m tests.sky_stub", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any, see <state>/server.json")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--token", default=os.environ.get("SKY_STUB_TOKEN"))
    options = parser.parse_args()
    options.state.mkdir(parents=True, exist_ok=True)
    Stub(options.port, options.state.resolve(), options.token).serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
