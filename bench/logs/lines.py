"""Lines as training programs print them, and the frames that runners make of them."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator
from typing import Any

from bench.logs.ground import RANK

_encode = json.JSONEncoder(separators=(",", ":")).encode


def texts(count: int, seed: int = 7) -> Iterator[str]:
    """Generate `count` lines of about 100 characters; one of a hundred is a warning."""
    pick = random.Random(seed)
    loss = 11.0
    for step in range(count):
        loss = max(1.7, loss * 0.99995 + pick.gauss(0, 0.004))
        if step % 100 == 99:
            yield (
                f"WARNING trainer.data worker {pick.randrange(16)} was late: shard "
                f"{pick.randrange(4096):05d} took {pick.uniform(1, 9):.3f} s, refilling the queue"
            )
        else:
            yield (
                f"step {step:8d} | loss {loss:.4f} | grad_norm {pick.uniform(0.2, 2):.3f} | "
                f"lr 3.0e-04 | {pick.randrange(171_000, 189_000)} tokens/s | mem 61.2 GiB"
            )


# The frames that a runner sends before its program's first line.
_BEGIN: list[dict[str, Any]] = [
    {"kind": "worker", "status": "RUNNING"},
    {"kind": "stage", "stage": "setup", "phase": "begin"},
    {"kind": "stage", "stage": "setup", "phase": "end", "ok": True},
    {"kind": "stage", "stage": "run", "phase": "begin"},
]


class Runner:
    """The runner of one job with one rank: numbers its frames, and packs them as runners do."""

    def __init__(self) -> None:
        self.written = 0
        self._to_begin_with = _BEGIN

    def body(self, lines: list[str]) -> bytes:
        """Return the body of one request with these lines."""
        contents = [
            {"kind": "line", "stream": "stdout", "text": text, "more": False} for text in lines
        ]
        contents, self._to_begin_with = [*self._to_begin_with, *contents], []
        now = time.time()
        frames = []
        for content in contents:
            self.written += 1
            frames.append(_encode({"rank": RANK, "seq": self.written, "t": now, **content}))
        return gzip.compress("\n".join(frames).encode(), 1)
