"""The process that looks for matches: it has no database, no secrets, and ends with its portal.

`python -m jobs.logs.match_process FD` speaks over a socket. A question is answered with `{}` or
`{"error", "position"}`; then each piece, announced by a header, is answered with its hits.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from jobs.logs.bad_patterns import BadPatternError
from jobs.logs.lines import decompressed
from jobs.logs.long_lines import LongLines
from jobs.logs.matching import Matcher, Question

# Of its own processor for one piece: a pattern that needs more is given up, with the process.
CPU_S = 3.0
_MEMORY_BYTES = 1024 * 1024 * 1024
# Requests of others come first.
_NICENESS = 5


def main() -> None:
    """Answer until the portal closes the connection."""
    # It ends with its portal's connection, which may have something to finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(EOFError, ConnectionError):
        _serve(Connection(int(sys.argv[1])))


def _serve(connection: Connection) -> None:
    matcher: Matcher | None = None
    long_lines = LongLines()
    while True:
        request = json.loads(connection.recv_bytes())
        if "question" in request:
            matcher, answer = _begun(request["question"])
        elif matcher is not None:
            long_lines = LongLines() if request.pop("is_first") else long_lines
            answer = _looked(matcher, request, connection.recv_bytes(), long_lines)
        else:
            return
        connection.send_bytes(json.dumps(answer).encode())


def _begun(question: dict[str, Any]) -> tuple[Matcher | None, dict[str, Any]]:
    try:
        return Matcher(Question(**question)), {}
    except BadPatternError as error:
        return None, {"error": str(error), "position": error.position}


def _looked(
    matcher: Matcher, request: dict[str, Any], payload: bytes, long_lines: LongLines
) -> dict[str, Any]:
    # The kernel ends a process that uses up this time, whatever it is busy with.
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    raw = decompressed(payload)
    hits, is_cut = matcher.hits(raw, **request, long_lines=long_lines)
    signal.setitimer(signal.ITIMER_PROF, 0)
    found = [(hit.number, hit.stored, hit.spans, hit.parts) for hit in hits]
    return {"hits": found, "is_cut": is_cut, "bytes": len(raw)}


if __name__ == "__main__":
    main()
