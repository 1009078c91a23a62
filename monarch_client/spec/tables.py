"""Mappings with fixed keys, and who may use each key (the three tiers)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from monarch_client.spec.findings import Findings, SpecCode, join, nearest, shortened
from monarch_client.spec.nodes import Node
from monarch_client.spec.shapes import Anything, Schema, Shape, nullable


class Tier(Enum):
    """The users who may use a key."""

    EVERYONE = "everyone"
    ADMIN = "admin"  # refused unless an administrator of the installation submits
    PORTAL = "portal"  # the portal sets it, or does its work in another way: always refused
    LATER = "later"  # nothing enforces it yet: refused, because ignoring it would mislead


@dataclass(frozen=True)
class Key:
    """One key of the specification. `why` gives the reason where the tier is not everyone's."""

    name: str
    about: str
    shape: Shape = Anything()  # noqa: RUF009 - frozen, and it holds nothing
    example: Any = None
    tier: Tier = Tier.EVERYONE
    why: str = ""
    required: bool = False
    # With which values of the other keys a required one may be left out.
    optional_if: Callable[[dict[str, Any]], bool] | None = None
    default: Any = None
    # What its values name, for completion: queues, secrets, jobs, infra, gpus or templates.
    names: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether the key is refused for all users."""
        return self.tier in {Tier.PORTAL, Tier.LATER}


Rule = Callable[[dict[str, Any], str, Findings], None]


@dataclass(frozen=True)
class Table(Shape):
    """A mapping with these keys and no others. `rules` look at several keys together."""

    keys: tuple[Key, ...]
    rules: tuple[Rule, ...] = ()
    # Where keys live that people put here by mistake: "accelerators" -> "resources.accelerators".
    elsewhere: tuple[tuple[str, str], ...] = ()
    words: str = "a mapping of keys to values"
    takes: ClassVar[tuple[type, ...]] = (dict,)

    @property
    def wants(self) -> str:
        return self.words

    def schema(self) -> Schema:
        required = [key.name for key in self.keys if key.required and not key.optional_if]
        return {
            "type": "object",
            "properties": {k.name: _described(k) for k in self.keys if not k.is_refused},
            "additionalProperties": False,
        } | ({"required": required} if required else {})

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        by_name = {key.name: key for key in self.keys}
        values: dict[str, Any] = {}
        for name, entry in node.value.items():
            where = join(path, name)
            findings.lines.setdefault(where, entry.line or 0)
            key = by_name.get(name)
            if key is None:
                self._unknown(name, path, findings)
            elif _may_use(key, where, findings) and entry.node.value is not None:
                values[name] = key.shape.read(entry.node, where, findings)
        self._add_missing(values, node, path, findings)
        for rule in self.rules:
            rule(values, path, findings)
        return values

    def _add_missing(
        self, values: dict[str, Any], node: Node, path: str, findings: Findings
    ) -> None:
        for key in self.keys:
            if key.name in values:
                continue
            if key.required and not (key.optional_if and key.optional_if(values)):
                where = join(path, key.name)
                message = f"{where} is missing: {key.about}"
                findings.add(where, SpecCode.MISSING, message, line=node.line)
            elif key.default is not None:
                values[key.name] = default_of(key)

    def _unknown(self, name: str, path: str, findings: Findings) -> None:
        if findings.is_full:
            return
        message = f"There is no key {shortened(name)!r}" + (f" in {path}." if path else ".")
        suggestion = dict(self.elsewhere).get(name)
        suggestion = suggestion or nearest(name, [k.name for k in self.keys if not k.is_refused])
        if suggestion:
            message += f" Did you mean {suggestion}?"
        findings.add(join(path, name), SpecCode.UNKNOWN_KEY, message, suggestion=suggestion)


def default_of(key: Key) -> Any:
    """Return the value a key has when it is not given, as a copy that may be changed."""
    if isinstance(key.shape, Table):
        made = {k.name: default_of(k) for k in key.shape.keys if k.default is not None}
        return made | key.default
    return dict(key.default) if isinstance(key.default, dict) else key.default


def _may_use(key: Key, path: str, findings: Findings) -> bool:
    if key.tier is Tier.EVERYONE or (key.tier is Tier.ADMIN and findings.admin):
        return True
    code, message = {
        Tier.ADMIN: (SpecCode.ADMIN_ONLY, "is for administrators of this installation"),
        Tier.PORTAL: (SpecCode.SET_BY_PORTAL, "is not yours to set"),
        Tier.LATER: (SpecCode.NOT_ENFORCED, "is not enforced by this version yet"),
    }[key.tier]
    findings.add(path, code, f"{path} {message}: {key.why}")
    return False


def _described(key: Key) -> Schema:
    schema: Schema = key.shape.schema()
    if not key.required:
        schema = nullable(schema)
    schema = {"description": key.about, **schema}
    if key.default is not None:
        schema["default"] = default_of(key)
    if key.example is not None:
        schema["examples"] = [key.example]
    if key.tier is Tier.ADMIN:
        schema["x-tier"] = "admin"
    if key.names:
        schema["x-names"] = key.names
    return schema
