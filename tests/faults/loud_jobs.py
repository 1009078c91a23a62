"""Loud jobs on a fleet: where they run, their readers, and the required content of their log."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import httpx

from monarch_client.rest.server_sent import read_events
from tests.faults import loud_lines
from tests.faults.fleet import JOBS, Fleet
from tests.faults.witness import BEGIN

RANKS = (0, 1)
NAME, SECRET = "HUB_TOKEN", 'hub-7Qx"w9+Zk-planted'
MASK = b"***"
_MASKS = re.compile(rb"(?:\*\*\*)+")
_RECONNECT_S = 0.2


def spec(port: int, infra: str) -> dict[str, Any]:
    """Build a job of two ranks; its programs report to the witness at `port`."""
    program = Path(loud_lines.__file__).read_text()
    run = BEGIN.format(port=port) + f"cat > loud.py <<'END'\n{program}END\nexec python3 loud.py\n"
    return {
        "name": "loud",
        "num_nodes": len(RANKS),
        "run": run,
        "secrets": {"TOKEN": NAME},
        "resources": {"infra": infra},
    }


def plant(fleet: Fleet) -> None:
    """Give the project the secret."""
    with fleet.client() as client:
        path = f"{JOBS.removesuffix('/jobs')}/secrets/{NAME}"
        client.put(path, json={"value": SECRET}).raise_for_status()


def written(rank: int, last: int = loud_lines.LINES) -> bytes:
    """Return the first `last` lines of a rank as docs/explanation/logs.md defines their storage.

    The secret is masked, bytes that are no UTF-8 are replaced line by line, and a line ends with a
    newline, or with a carriage return and a newline.
    """
    raw = loud_lines.lines(rank, SECRET.encode(), 1, last)
    kept = raw.replace(SECRET.encode(), MASK).replace(b"\r\n", b"\n")
    return b"\n".join(line.decode(errors="replace").encode() for line in kept.split(b"\n"))


def with_single_masks(text: bytes) -> bytes:
    """Replace the masks of a secret that came in several pieces by one."""
    return _MASKS.sub(MASK, text)


def downloaded(fleet: Fleet, job_id: int, rank: int) -> bytes:
    """Download a rank's output as the file that users can save."""
    with fleet.client() as client:
        query = {"rank": rank, "stream": "stdout"}
        answer = client.get(f"{JOBS}/{job_id}/logs/download", params=query, timeout=60)
    return with_single_masks(answer.raise_for_status().content)


def assert_same(found: bytes, expected: bytes, what: str) -> None:
    """Compare byte by byte; report only the first line that differs, not ten megabytes."""
    if found == expected:
        return
    there, wanted = found.split(b"\n"), expected.split(b"\n")
    pairs = zip(there, wanted, strict=False)
    at = next((n for n, (one, other) in enumerate(pairs) if one != other), len(there))
    raise AssertionError(
        f"{what}: {len(there)} lines for {len(wanted)}; from line {at + 1} on\n"
        f"{there[at : at + 3]!r:.900}\nfor\n{wanted[at : at + 3]!r:.900}"
    )


class Listener:
    """A reader of a job's stream by the API's rules: goes on with Last-Event-ID, drops nothing."""

    def __init__(self, fleet: Fleet, job_id: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self.broken = 0
        self.is_done = False
        self._fleet = fleet
        self._path = f"{JOBS}/{job_id}/logs/stream"
        self._last_id = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="listener", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until the stream has reported its end."""
        self._thread.join(seconds)
        assert self.is_done, f"the stream has not ended; {len(self.rows)} lines"

    def close(self) -> None:
        """Stop listening."""
        self._stopping.set()
        self._thread.join(60)

    def text(self, rank: int) -> bytes:
        """Return a rank's output as the stream delivered it."""
        mine = [row for row in self.rows if (row["rank"], row["stream"]) == (rank, "stdout")]
        pieces = (row["text"] if row["more"] else f"{row['text']}\n" for row in mine)
        return with_single_masks("".join(pieces).encode())

    def remarks(self) -> list[str]:
        """List the portal's own lines."""
        return [row["text"] for row in self.rows if row["stream"] == "portal"]

    def _listen(self) -> None:
        with self._fleet.client() as client:
            while not self.is_done and not self._stopping.is_set():
                self._read_until_broken(client)

    def _read_until_broken(self, client: httpx.Client) -> None:
        try:
            self._read(client)
        except httpx.HTTPError:
            self.broken += 1
            self._stopping.wait(_RECONNECT_S)

    def _read(self, client: httpx.Client) -> None:
        headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
        with client.stream("GET", self._path, headers=headers, timeout=30) as response:
            response.raise_for_status()
            for event in read_events(response.iter_bytes()):
                if event.event == "line":
                    self.rows += json.loads(event.data)
                    self._last_id = event.id
                self.is_done |= event.event == "end"
                if self.is_done or self._stopping.is_set():
                    return
