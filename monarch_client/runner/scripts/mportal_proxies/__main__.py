"""Serve one session of mesh proxies: `python -m mportal_proxies --listen ADDRESS`.

ADDRESS is `unix:PATH` or `tcp:HOST:PORT`. The meshes are those of the driver's plan, the file in
MPORTAL_RUNTIME_FILE. Once the process listens it prints a line, `listening ADDRESS`. It ends, and
with it what the session started, when the client says goodbye or stays away too long.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile

from .driver import Settings, serve


def main() -> None:
    """Serve until the session ends."""
    parser = argparse.ArgumentParser(prog="mportal_proxies")
    parser.add_argument("--listen", required=True)
    parser.add_argument("--away-limit-s", type=float, default=300.0)
    parser.add_argument("--tls-subject", default="", help="the CN of the client's certificate")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="for results that wait")
    given = parser.parse_args()
    # Modules of the job's code are imported from the directory this process runs in.
    sys.path[0] = ""
    settings = Settings(given.listen, given.away_limit_s, given.tls_subject, given.folder)
    asyncio.run(serve(settings))
    sys.stdout.flush()
    sys.stderr.flush()
    # Monarch's exit hooks may wait for hosts that no longer answer.
    os._exit(0)


main()
