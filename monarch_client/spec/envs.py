"""Environment variables of a job: their names, and values as they were written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from monarch_client.spec.findings import Findings, SpecCode, name_of
from monarch_client.spec.nodes import Node
from monarch_client.spec.shapes import KeyName, Mapping, Schema, Shape

_MOST_BYTES = 32 * 1024
_SET_BY_RUNNER = ("SKYPILOT_SETUP_", "SKYPILOT_NODE_", "SKYPILOT_NUM_", "MPORTAL_")
_SET_BY_RUNNER_EXACTLY = ("SKYPILOT_TASK_ID",)


@dataclass(frozen=True)
class EnvValue(Shape):
    """Text; numbers and yes/no are taken as they were written (`1.10` stays `1.10`)."""

    takes: ClassVar[tuple[type, ...]] = (str, int, float, bool)

    @property
    def wants(self) -> str:
        return 'text (for an empty value write "")'

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        if len(node.text.encode()) > _MOST_BYTES:
            message = f"{name_of(path)} is longer than {_MOST_BYTES:,} bytes."
            findings.add(path, SpecCode.TOO_LARGE, message, line=node.line)
        return node.text


def env_complaint(name: str) -> str | None:
    """Why no job may set the variable, if so."""
    if name.startswith(_SET_BY_RUNNER) or name in _SET_BY_RUNNER_EXACTLY:
        return f"{name} is set by the portal on every node; choose another name."
    return None


ENVS = Mapping(
    "a mapping of names to values",
    KeyName("a name of letters, digits and _", r"[A-Za-z_][A-Za-z0-9_]{0,254}", env_complaint),
    EnvValue(),
)
