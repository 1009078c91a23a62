"""A run as a script: its steps as plain values, kept in a file and read again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.portal_process import CHECKOUT

RESULTS = CHECKOUT / ".results" / "model"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a script. Which fields have a meaning depends on `do`."""

    do: str
    job: str = ""
    again: str = ""  # of rerun: the name of the new job
    program: str = ""
    other: str = ""  # of both: the request that is sent at the same time
    part: str = ""
    moment: str = ""

    def __str__(self) -> str:
        fields = {key: value for key, value in asdict(self).items() if value and key != "do"}
        return f"{self.do}({', '.join(f'{key}={value}' for key, value in fields.items())})"


def save(name: str, steps: Sequence[Step], found: str, results: Path = RESULTS) -> Path:
    """Write a script and what it found, and return the path."""
    results.mkdir(parents=True, exist_ok=True)
    rows = [{key: value for key, value in asdict(step).items() if value} for step in steps]
    path = results / f"{name}.json"
    path.write_text(json.dumps({"found": found, "steps": rows}, indent=1) + "\n")
    return path


def load(path: Path) -> list[Step]:
    """Load the steps of a script."""
    return [Step(**row) for row in json.loads(path.read_text())["steps"]]
