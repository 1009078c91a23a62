"""Users' programs that use Monarch: each is a process, because a process has one client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

CHECKOUT = Path(__file__).resolve().parents[1]
END_S = 90


class RunProgram(Protocol):
    """A function that runs a program to its end and returns the words of its `say`.

    `variables` are added to its environment.
    """

    def __call__(self, text: str, *arguments: object, **variables: str) -> list[str]: ...


def runner_in(folder: Path, prefix: Sequence[str] = (), end_s: float = END_S) -> RunProgram:
    """Return a function that runs programs in a folder; `prefix` is a command that starts them."""

    def run(text: str, *arguments: object, **variables: str) -> list[str]:
        file = folder / "program.py"
        file.write_text(text)
        done = subprocess.run(
            [*prefix, sys.executable, file, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), **variables},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=end_s,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        lines = done.stdout.splitlines()
        return [line.removeprefix("said: ") for line in lines if line.startswith("said: ")]

    return run
