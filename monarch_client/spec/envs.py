"""Environment variables of a job: their names, and values as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monarch_client.spec import shapes
from monarch_client.spec.findings import Findings, SpecCode, name_of
from monarch_client.spec.nodes import Entry, Node
from monarch_client.spec.shapes import KeyName, Written

_MOST_BYTES = 32 * 1024
_SET_BY_RUNNER = ("SKYPILOT_SETUP_", "SKYPILOT_NODE_", "SKYPILOT_NUM_", "MPORTAL_")
_SET_BY_RUNNER_EXACTLY = ("SKYPILOT_TASK_ID",)
# bash gives these values of its own, whatever its environment says.
_SET_BY_SHELL = frozenset(
    (
        *("BASH", "BASHOPTS", "BASHPID", "BASH_COMMAND", "BASH_EXECUTION_STRING", "BASH_SUBSHELL"),
        *("BASH_VERSINFO", "BASH_VERSION", "COMP_WORDBREAKS", "EPOCHREALTIME", "EPOCHSECONDS"),
        *("HISTCMD", "IFS", "LINENO", "OLDPWD", "OPTERR", "OPTIND", "PPID", "PWD", "RANDOM"),
        *("SECONDS", "SHELLOPTS", "SHLVL", "SRANDOM", "_"),
    )
)
# Programs are not found or do not start with any other value than one meant for this.
_NEEDED_BY_SHELL = frozenset(
    ("BASH_ENV", "CDPATH", "ENV", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "TMPDIR")
)


@dataclass(frozen=True)
class EnvValue(Written):
    """The value of a variable."""

    @property
    def wants(self) -> str:
        return 'text (for an empty value write "")'

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        if len(node.text.encode()) > _MOST_BYTES:
            message = f"{name_of(path)} is longer than {_MOST_BYTES:,} bytes."
            findings.add(path, SpecCode.TOO_LARGE, message, line=node.line)
        return node.text


@dataclass(frozen=True)
class Variable(EnvValue):
    """The value of one variable; one without a value is for the submitter to give."""

    def read(self, node: Node, path: str, findings: Findings) -> Any:
        """Return the value; a missing one is an error that says how to give it."""
        if node.value is None:
            name = path.rpartition(".")[2]
            message = (
                f"{path} has no value: give it with `-e {name}=...`, or write one here "
                '("" for an empty value).'
            )
            findings.add(path, SpecCode.WRONG_TYPE, message, line=node.line)
            return None
        return super().read(node, path, findings)


def with_envs(root: Node, envs: Mapping[str, str]) -> Node:
    """Return the specification `root` with the variables `envs` in place of its own."""
    given = root.value.get("envs") if isinstance(root.value, dict) else None
    if not envs or not isinstance(root.value, dict):
        return root
    if given is not None and not isinstance(given.node.value, dict | None):
        return root
    line = given.line if given else None
    entries = dict(given.node.value or {}) if given else {}
    for name, value in envs.items():
        own = entries[name].line if name in entries else line
        entries[name] = Entry(own, Node(value, own, value))
    return Node({**root.value, "envs": Entry(line, Node(entries, line))}, root.line)


def env_complaint(name: str) -> str | None:
    """Return why no job may set the variable; None if one may."""
    if name.startswith(_SET_BY_RUNNER) or name in _SET_BY_RUNNER_EXACTLY:
        return f"{name} is set by the portal on every node; choose another name."
    if name in _SET_BY_SHELL:
        return f"{name} is set by the shell itself; choose another name."
    return None


def made_variable_complaint(name: str) -> str | None:
    """Return why no array and no secret may be the variable; None if one may."""
    if name in _NEEDED_BY_SHELL:
        return f"the shell needs {name} to run commands; choose another name."
    return env_complaint(name)


ENVS = shapes.Mapping(
    "a mapping of names to values",
    KeyName("a name of letters, digits and _", r"[A-Za-z_][A-Za-z0-9_]{0,254}", env_complaint),
    Variable(),
)
