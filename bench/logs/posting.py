"""Posting bodies of frames over connections that stay, as runners do."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterable

from bench.logs.ground import LogGround, Talker

# The connections over which the lines of many jobs arrive.
CONNECTIONS = 8


class Connection:
    """One connection to the portal."""

    def __init__(self, ground: LogGround) -> None:
        self._connection = http.client.HTTPConnection(ground.host, ground.port, timeout=60)

    def post(self, talker: Talker, body: bytes) -> dict[str, int]:
        """Post frames and return the acknowledged sequence number of each rank."""
        self._connection.request(
            "POST",
            f"/api/v1/attempts/{talker.attempt_id}/frames",
            body,
            {
                "Authorization": f"Bearer {talker.token}",
                "Content-Type": "application/x-ndjson",
                "Content-Encoding": "gzip",
                "X-Sent-At": f"{time.time():.3f}",
            },
        )
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {content[:300]!r}")
        acked: dict[str, int] = json.loads(content)["acked"]
        return acked

    def close(self) -> None:
        """Close the connection, as the portal does with idle ones. The next post connects again."""
        self._connection.close()

    def post_all(self, posts: Iterable[tuple[Talker, bytes]]) -> None:
        """Post the bodies one after the other."""
        for talker, body in posts:
            self.post(talker, body)
