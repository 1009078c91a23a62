"""The state of a node. A node sends all of it after each change, so that none is missed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

# The goals of a node, in order. Setting a goal again changes nothing.
GOALS = ("setup", "workers", "run", "end")

# The obstacles to a node's first goal, besides `setup` itself.
UPLOADS, REPOSITORY, MONARCH = "uploads", "repository", "monarch"

# The states of a worker.
NONE, STARTING, READY, FAILED, LOST, EXITED = "", "starting", "ready", "failed", "lost", "exited"


@dataclass
class NodeState:
    """Exit codes are None until the command has ended."""

    setup: int | None = None
    setup_late: bool = False
    # Why setup was skipped; and what else stood in the way of this node, see `preparation`.
    setup_skipped: str = ""
    obstacle: str = ""
    obstacle_why: str = ""
    worker: str = NONE
    worker_why: str = ""
    # Of a lost worker's process; None if its end was not observed.
    worker_exit: int | None = None
    python: str = ""
    torchmonarch: str = ""
    run: int | None = None
    # A signal ended the command itself, not a program whose signal the shell reports.
    run_signalled: bool = False
    oom: bool = False
    # How many mesh processes here exited while the worker lived, and the names of their procs
    # (None: not known); and the number of kernel kills for lack of memory by then.
    procs_gone: int = 0
    gone_names: list[str] | None = None
    oom_kills: int = 0
    evidence: str = ""
    stopped_by: str = ""
    ended: bool = False

    def has_proc_ended(self, name: str) -> bool:
        """Whether the process of a proc of this node has exited."""
        return self.procs_gone > 0 if self.gone_names is None else name in self.gone_names

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> NodeState:
        """Parse the state; ignore fields that another version of the runner adds."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in raw.items() if name in known})
