"""Drop the modules of changed files, so that the next import reads the new code.

Used by processes of meshes and by programs on laptops. Objects that exist keep the old code.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def drop_modules(folder: str, changed: Iterable[str]) -> list[str]:
    """Drop the modules of `changed` files below `folder`, and those that use them.

    Return the names of the dropped modules. `__main__` stays: it cannot be imported again.
    """
    importlib.invalidate_caches()
    top = os.path.abspath(folder)  # noqa: PTH100 - Path would follow the link of a work directory
    paths = {os.path.join(top, path) for path in changed}  # noqa: PTH118
    ours = {
        name: module
        for name, module in list(sys.modules.items())
        if name != "__main__" and _file_in(top, module)
    }
    dropped = {name for name, module in ours.items() if _file_in(top, module) in paths}
    imports = {name: _imports_of(module) for name, module in ours.items()} if dropped else {}
    while more := {
        name
        for name, module in ours.items()
        if name not in dropped
        and (_is_inside(name, dropped) or imports[name] & dropped or _uses(module, dropped))
    }:
        dropped |= more
    for name in dropped:
        del sys.modules[name]
        above, _, own = name.rpartition(".")
        if above in sys.modules and above not in dropped:
            vars(sys.modules[above]).pop(own, None)
    return sorted(dropped)


def _file_of(module: object) -> str:
    file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
    return file if isinstance(file, str) else ""


def _file_in(top: str, module: object) -> str:
    """Return the file of a module that is below a folder, perhaps through links; "" otherwise."""
    file = _file_of(module)
    for path in (file, os.path.realpath(file) if file else ""):
        if path.startswith(top + os.sep):
            return path
    return ""


def _is_inside(name: str, dropped: set[str]) -> bool:
    """Whether a module is in a dropped package: it would be no attribute of the new one."""
    above = name.rpartition(".")[0]
    return bool(above) and (above in dropped or _is_inside(above, dropped))


def _imports_of(module: ModuleType) -> set[str]:
    """Return the names that the source of a module imports, as far as they may be modules.

    A module keeps no trace of where it has a number or a text from.
    """
    try:
        with open(_file_of(module), "rb") as file:  # noqa: PTH123
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = (module.__package__ or "").split(".")
            above = above[: len(above) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            found.add(source)
            found.update(f"{source}.{alias.name}" for alias in node.names)
    return found


def _uses(module: ModuleType, dropped: set[str]) -> bool:
    """Whether a module refers to a dropped one, or to something that one defines."""
    for attribute, value in list(vars(module).items()):
        if isinstance(value, ModuleType):
            # Python itself makes a submodule an attribute of its package.
            own = f"{module.__name__}.{attribute}"
            if value.__name__ in dropped and value.__name__ != own:
                return True
        elif isinstance(value, (type, FunctionType)):
            if value.__module__ in dropped:
                return True
        elif type(value).__module__ in dropped:
            return True
    return False
