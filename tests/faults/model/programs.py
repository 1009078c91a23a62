"""The programs of the jobs of the model test, and how each would end by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from jobs.statuses import JobStatus, StopReason

# Room for all jobs together: small, so that jobs really wait for each other.
NODES = 3
LINES = 3
_LOOP = f"for i in $(seq {LINES}); do echo line $i; done\n"


@dataclass(frozen=True, slots=True)
class Ending:
    """The way in which a job ends by itself."""

    status: JobStatus
    reason: StopReason
    exit_code: int


@dataclass(frozen=True, slots=True)
class Program:
    """One sort of job. Without an ending it runs until a request ends it."""

    name: str
    run: str
    ending: Ending | None = None
    nodes: int = 1
    attempts: int = 1  # how many it takes, if nothing is lost
    held: bool = False  # submitted held

    def text(self, job: str) -> str:
        """Build the specification of a job of that name."""
        portal: dict[str, Any] = {"hold": True} if self.held else {}
        if self.attempts > 1:
            portal["retry"] = {"max_attempts": self.attempts}
        # Another try because a machine was lost would be a fault: no step harms a job's machines.
        fields = {"name": job, "num_nodes": self.nodes, "run": self.run, "portal": portal}
        return yaml.safe_dump({key: value for key, value in fields.items() if value})


_WELL = Ending(JobStatus.SUCCEEDED, StopReason.COMPLETED, 0)
_ALL = (
    Program("quick", _LOOP, _WELL),
    Program("failing", _LOOP + "exit 7\n", Ending(JobStatus.FAILED, StopReason.USER_CODE, 7)),
    Program("retrying", _LOOP + '[ "$MPORTAL_ATTEMPT" = 2 ]\n', _WELL, attempts=2),
    Program("pair", _LOOP, _WELL, nodes=2),
    Program("long", _LOOP + "exec sleep 3600\n"),
    Program("longpair", _LOOP + "exec sleep 3600\n", nodes=2),
    Program("held", _LOOP, _WELL, held=True),
)
PROGRAMS = {program.name: program for program in _ALL}
