"""The carrier without a portal: prints frames as readable lines, for `sky logs`."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from monarch_client.runner.delivery.print_carrier import PrintCarrier
from monarch_client.runner.vocabulary import frames, stages, streams

if TYPE_CHECKING:
    from typing import Any, Callable

    from monarch_client.runner.journal.journal import Journal

_BATCH_BYTES = 64 * 1024


class PlainCarrier(PrintCarrier):
    """A printer with its own thread, which calls `on_drained` once everything is printed."""

    def __init__(self, journal: Journal, on_drained: Callable[[], None], fd: int = 1) -> None:
        super().__init__(journal, 0, on_drained, fd)

    def _print_samples(self) -> None:
        """Skip samples, which are not for a readable log."""
        self._samples_at = math.inf

    def _print_batch(self) -> None:
        batch = self._journal.peek(_BATCH_BYTES)
        lines = (line_of(json.loads(frame)) for frame in batch)
        self._write([line.encode("utf-8", "replace") + b"\n" for line in lines if line])
        self._journal.acknowledge(batch)


def line_of(frame: dict[str, Any]) -> str:
    """Return a frame as one line; "" for a kind that is not printed."""
    kind, rank = frame["kind"], frame["rank"]
    if kind == frames.LINE:
        return _line_of_output(rank, frame["stream"], frame["text"])
    if kind == frames.WORKER:
        return _line_of_worker(frame.get("about", rank), frame)
    if kind == frames.STAGE and frame["phase"] == stages.BEGIN:
        return _ours("{}: begins", frame["stage"])
    if kind == frames.END:
        words = [frame["message"], frame["hint"]]
        return _ours("the end ({}): {}", frame["reason"], " ".join(filter(None, words)))
    return ""


def _line_of_output(rank: int, stream: str, text: str) -> str:
    if stream == streams.PORTAL:
        return _ours("rank {}: {}", rank, text)
    return "rank {}{}| {}".format(rank, " setup" if stream == streams.SETUP else "", text)


def _line_of_worker(rank: int, frame: dict[str, Any]) -> str:
    python = ", Python {}".format(frame["python"]) if frame["python"] else ""
    why = ": {}".format(frame["detail"]) if frame["detail"] else ""
    return _ours("rank {} is {} at {}{}{}", rank, frame["status"], frame["address"], python, why)


def _ours(pattern: str, *words: object) -> str:
    # One line, whatever an error's text holds.
    return " ".join(("mportal: " + pattern).format(*words).split())
