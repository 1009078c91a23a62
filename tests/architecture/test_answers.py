"""The answers of REST: every field is set where an answer is built, and names are unique."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from monarch_client import wire
from tests.architecture.source import at, nodes_of, python_files

WIRE = wire.__name__


def answers() -> list[type]:
    """Import all dataclasses of `monarch_client.wire`."""
    names = [f"{WIRE}.{each.name}" for each in pkgutil.iter_modules(wire.__path__)]
    modules = [importlib.import_module(name) for name in names]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    ]


def named_answers(nodes: tuple[ast.AST, ...]) -> dict[str, Any]:
    """Return answers by the names that a file has for them: `Job`, `wire.Job`, a subclass's."""
    found: dict[str, Any] = {}
    for node in nodes:
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        for name in node.names:
            known = name.asname or name.name
            if node.module == WIRE:
                module = vars(importlib.import_module(f"{WIRE}.{name.name}"))
                found |= {f"{known}.{each}": kind for each, kind in module.items()}
            elif (node.module or "").startswith(f"{WIRE}."):
                found[known] = vars(importlib.import_module(node.module or ""))[name.name]
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(each) for each in node.bases]
            found[node.name] = next((found[base] for base in bases if base in found), None)
    return {name: kind for name, kind in found.items() if is_dataclass(kind)}


def missing_fields(path: Path) -> Iterator[str]:
    """Yield each call in a file that leaves a field of an answer to its default."""
    nodes = nodes_of(path)
    known = named_answers(nodes)
    for node in nodes:
        if not isinstance(node, ast.Call) or any(each.arg is None for each in node.keywords):
            continue
        name, inherited = ast.unparse(node.func), set()
        if name == "extended" and (kind := known.get(ast.unparse(node.args[0]))):
            inherited = {each.name for each in fields(kind.__bases__[0])}
        else:
            kind = known.get(name)
        if kind is None:
            continue
        wanted = {each.name for each in fields(kind)} - inherited
        if lacking := sorted(wanted - {each.arg for each in node.keywords}):
            yield at(path, node.lineno, f"{kind.__name__} without {', '.join(lacking)}")


def test_the_portal_sets_every_field_of_an_answer():
    assert [each for path in python_files("jobs") for each in missing_fields(path)] == []


def test_names_of_answers_are_unique():
    names = [kind.__name__ for kind in answers()]
    assert sorted(names) == sorted(set(names))
