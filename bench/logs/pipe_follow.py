"""The bare way of a line to a follower: a program that prints into a pipe, and who reads it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from bench.logs import talk
from bench.logs.program import following

PEER = "a pipe with one reader"


def followed(lines_per_s: float) -> dict[str, float]:
    """Return what the reader of one program saw that prints so many lines a second."""
    with tempfile.TemporaryDirectory(prefix="pipe-talk-", dir="/tmp") as folder:
        go = Path(folder) / "go"
        command = [sys.executable, talk.__file__, str(go), str(lines_per_s)]
        with following(command, os.environ) as follower:
            follower.wait_until_open()
            go.touch()
            return {**follower.seen(), "followers": 1}
