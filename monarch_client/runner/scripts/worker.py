"""Serve a Monarch worker. Run as a script by a fresh interpreter: `worker.py ADDRESS FACTS`.

Serves at ADDRESS until it is shut down or killed, and writes its versions to the file FACTS.
Timeouts and certificates are in the environment.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def main(address: str, facts: str) -> None:
    """Serve; returns when a driver shuts the host down."""
    versions = {"python": "{}.{}".format(*sys.version_info[:2]), "torchmonarch": _monarch()}
    Path(facts).write_text(json.dumps(versions))
    # Processes of a mesh import users' modules from the directory this one runs in.
    sys.path[0] = ""
    from monarch.actor import run_worker_loop_until_shutdown  # noqa: PLC0415

    run_worker_loop_until_shutdown(ca="trust_all_connections", address=address)


def _monarch() -> str:
    """Return the version of torchmonarch; "" if it is not installed as a package."""
    try:
        return version("torchmonarch")
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main(*sys.argv[1:3])
