"""The key `secrets`: which secrets of its project a job is given, never what they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from monarch_client.spec.envs import made_variable_complaint
from monarch_client.spec.findings import Findings, SpecCode, join, shortened
from monarch_client.spec.nodes import Node
from monarch_client.spec.shapes import Schema, Shape

SECRET_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"  # noqa: S105 - a form
_NAME_IN_WORDS = "a letter or _, then letters, digits and _, at most 100"
_RESERVED = ("SKYPILOT_", "MPORTAL_")
# All of them together must fit into a process's environment.
MOST_SECRETS = 32


def name_complaint(name: str) -> str | None:
    """Return why it cannot name a secret and an environment variable; None if it can."""
    if not re.fullmatch(SECRET_NAME, name):
        return f"a name is {_NAME_IN_WORDS}"
    if name.upper().startswith(_RESERVED):
        return "names that begin with SKYPILOT_ or MPORTAL_ are not free"
    complaint = made_variable_complaint(name)
    return complaint and complaint.removesuffix(".")


@dataclass(frozen=True)
class Secrets(Shape):
    """A list of names; or environment variables, each with the name of a secret or nothing.

    The normal form is a mapping. No message repeats the text in place of a name: it may be
    the secret itself.
    """

    takes: ClassVar[tuple[type, ...]] = (dict, tuple)

    @property
    def wants(self) -> str:
        return "a list of names, or a mapping of environment variables to names of secrets"

    def schema(self) -> Schema:
        name: Schema = {"type": "string", "pattern": f"^(?:{SECRET_NAME})$"}
        return {
            "anyOf": [
                {"type": "array", "items": name, "maxItems": MOST_SECRETS},
                {
                    "type": "object",
                    "propertyNames": {"pattern": name["pattern"]},
                    "additionalProperties": {**name, "type": ["string", "null"]},
                    "maxProperties": MOST_SECRETS,
                },
            ]
        }

    def _read(self, node: Node, path: str, findings: Findings) -> dict[str, str]:
        if len(node.value) > MOST_SECRETS:
            message = f"{path} has more than {MOST_SECRETS} entries."
            findings.add(path, SpecCode.TOO_LARGE, message, line=node.line)
        if isinstance(node.value, tuple):
            return self._read_list(node, path, findings)
        values: dict[str, str] = {}
        for variable, entry in node.value.items():
            where = join(path, variable)
            findings.lines[where] = entry.line or 0
            if complaint := name_complaint(variable):
                _refuse_variable(variable, where, complaint, findings)
            elif entry.node.value is None:
                values[variable] = variable
            elif _is_name(entry.node.value):
                values[variable] = entry.node.value
            else:
                _refuse_value(variable, where, entry.line, findings)
        return values

    def _read_list(self, node: Node, path: str, findings: Findings) -> dict[str, str]:
        values: dict[str, str] = {}
        for number, item in enumerate(node.value):
            if _is_name(item.value):
                findings.lines[join(path, item.value)] = item.line or node.line or 0
                values[item.value] = item.value
            else:
                _refuse_value("", f"{path}[{number}]", item.line, findings)
        return values


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and name_complaint(value) is None


def _refuse_variable(variable: str, path: str, complaint: str, findings: Findings) -> None:
    message = f"{path}: {shortened(variable)!r} can't be given to a job: {complaint}."
    findings.add(path, SpecCode.BAD_VALUE, message)


def _refuse_value(variable: str, path: str, line: int | None, findings: Findings) -> None:
    example = variable or "NAME"
    message = (
        f"{path} must be the name of a secret of the project, never its value. Set the value with "
        f"`mportal secret set {example}`, and write `secrets: [{example}]` here."
    )
    findings.add(path, SpecCode.BAD_VALUE, message, line=line)


def refuse_envs_that_are_secrets(values: dict[str, Any], _: str, findings: Findings) -> None:
    """Refuse a variable that both `envs` and `secrets` set."""
    envs, given = values.get("envs"), values.get("secrets")
    if not isinstance(envs, dict) or not isinstance(given, dict):
        return
    for variable in given:
        if variable in envs:
            message = f"{variable} is in envs and in secrets: leave one of them out."
            findings.add(join("secrets", variable), SpecCode.CONFLICT, message)
