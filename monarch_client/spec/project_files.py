"""Specifications that a project keeps beside its code: portal.yaml, and pyproject.toml.

Each gives default values of the keys of a specification. What a job says itself comes first, then
portal.yaml, then `[tool.mportal]` of pyproject.toml; with that table, the `[project]` table of the
same file gives the default `setup`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.documents import is_several
from monarch_client.spec.envs import with_envs
from monarch_client.spec.files import InvalidFileError, text_of_file
from monarch_client.spec.findings import Findings, SpecCode
from monarch_client.spec.from_object import read_object
from monarch_client.spec.from_yaml import read_yaml
from monarch_client.spec.nodes import Entry, Node, content_of
from monarch_client.spec.pyproject import read_pyproject
from monarch_client.spec.task_keys import TASK
from monarch_client.spec.text_edits import set_key

PORTAL_YAML, PYPROJECT = "portal.yaml", "pyproject.toml"
PROJECT_FILES = (PORTAL_YAML, PYPROJECT)

# A key of the specification, or a key of a mapping of `_MERGED`, whose own keys have no path.
KeyPath: TypeAlias = tuple[str, ...]

# Mappings of which a job may replace single keys. Others are replaced as a whole.
_MERGED = frozenset({"resources", "envs", "secrets", "file_mounts", "volumes", "portal", "config"})
_NODES, _MESHES = ("num_nodes",), ("portal", "meshes")
_INFRA, _PARTS = ("resources", "infra"), [("resources", key) for key in ("cloud", "region", "zone")]
_CHOICES = (("resources", "any_of"), ("resources", "ordered"))
# Keys that exclude each other: a default of the first is unused if a job sets one of the second.
_EXCLUDED_BY: dict[KeyPath, Collection[KeyPath]] = {
    _NODES: [_MESHES],
    _MESHES: [_NODES],
    _INFRA: _PARTS,
    **{part: [_INFRA] for part in _PARTS},
    _CHOICES[0]: [_CHOICES[1]],
    _CHOICES[1]: [_CHOICES[0]],
}
# Mappings that share the names below them: a variable or a path is in one of the two.
_SHARED = {"envs": "secrets", "file_mounts": "volumes"}
_SHARED |= {other: key for key, other in _SHARED.items()}


@dataclass(frozen=True, slots=True)
class Default:
    """A default value, and the file and line that it was read from."""

    value: Any
    file: str
    line: int | None

    @property
    def where(self) -> str:
        """The position of the value, such as portal.yaml:3."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class ProjectDefaults:
    """The default values of a folder's project files, by key."""

    values: Mapping[KeyPath, Default] = field(default_factory=dict)

    def completed(self, text: str) -> tuple[str, dict[str, Default]]:
        """Return a specification with the defaults that it lacks, and these by their paths.

        A text that cannot be read is returned unchanged: its parser reports why.
        """
        try:
            root = read_yaml(text, Findings())
        except InvalidSpecErrors:
            return text, {}
        if root.value is not None and not isinstance(root.value, dict):
            return text, {}
        own = dict(_flat(root))
        used = _without(self.values, own)
        for top in dict.fromkeys(path[0] for path in used):
            text = _set(text, top, used, own)
        return text, {".".join(path): default for path, default in used.items()}

    def completed_object(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return a specification that is no text with the defaults that it lacks.

        InvalidSpecErrors: it has values that JSON cannot carry.
        """
        root = read_object(dict(spec), Findings())
        made = dict(spec)
        for path, default in _without(self.values, dict(_flat(root))).items():
            if len(path) == 1:
                made[path[0]] = default.value
            else:
                made[path[0]] = {**(made.get(path[0]) or {}), path[1]: default.value}
        return made

    def excluding(self, paths: Collection[KeyPath]) -> ProjectDefaults:
        """Return the defaults of all other keys."""
        return ProjectDefaults(
            {path: each for path, each in self.values.items() if path not in paths}
        )


NO_DEFAULTS = ProjectDefaults()


def project_defaults(folder: Path) -> ProjectDefaults:
    """Read the project files of a folder. InvalidFileError: one is wrong."""
    texts = {name: text for name in PROJECT_FILES if (text := _text(folder, name)) is not None}
    return defaults_of(texts)


def _text(folder: Path, name: str) -> str | None:
    """Return the text of a project file; None if there is none."""
    try:
        return text_of_file(folder / name, name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problem = SpecError("", None, "unreadable", f"It cannot be read: {error.strerror}.")
        raise InvalidFileError(name, [problem]) from error


def defaults_of(texts: Mapping[str, str]) -> ProjectDefaults:
    """Return the defaults of project files that are given by their names.

    InvalidFileError: one is wrong. A folder with one of them is the default `workdir`.
    """
    layers = [_read(name, texts[name]) for name in PROJECT_FILES if name in texts]
    found: dict[KeyPath, Default] = {}
    for layer in layers:
        found |= _without(layer, {path: each.value for path, each in found.items()})
    if found and ("workdir",) not in found:
        found["workdir",] = Default(".", next(iter(found.values())).file, None)
    return ProjectDefaults(found)


def flat_values(text: str) -> Iterator[tuple[KeyPath, Any, int | None]]:
    """Yield the keys of a specification that defaults may complete: path, value and line."""
    root = read_yaml(text, Findings())
    for path, value in _flat(root):
        yield path, value, _line(root, path)


def _read(name: str, text: str) -> dict[KeyPath, Default]:
    if name == PORTAL_YAML and is_several(text):
        return {}  # jobs to submit together, and no defaults of others
    # The portal decides which keys are for administrators.
    findings = Findings(admin=True)
    try:
        if name == PYPROJECT:
            found = read_pyproject(text, findings)
            root, setup = found.root, found.setup
        else:
            root, setup = read_yaml(text, findings), None
        if root.value is not None:
            TASK.read(with_envs(root, dict.fromkeys(_variables_to_give(root), "")), "", findings)
    except InvalidSpecErrors:
        pass  # it is among the findings
    # It need not be a whole specification: a job may bring its command.
    errors = [each for each in findings.errors if (each.path, each.code) != _NO_RUN]
    if errors:
        raise InvalidFileError(name, sorted(errors, key=lambda each: each.line or 0))
    flat = _flat(root)
    values = {path: Default(value, name, _line(root, path)) for path, value in flat}
    if setup is not None and ("setup",) not in values:
        values["setup",] = Default(setup[0], name, setup[1])
    return values


def _variables_to_give(root: Node) -> list[str]:
    """Return the variables without a value: who submits gives them."""
    envs = root.value.get("envs") if isinstance(root.value, dict) else None
    values = envs.node.value if envs else None
    entries = values.items() if isinstance(values, dict) else ()
    return [name for name, entry in entries if entry.node.value is None]


_NO_RUN = ("run", SpecCode.MISSING.value)


def _flat(root: Node) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the values of a specification, those of merged mappings each on its own."""
    if not isinstance(root.value, dict):
        return
    for key, entry in root.value.items():
        if key in _MERGED and isinstance(entry.node.value, dict):
            for name, below in entry.node.value.items():
                yield (key, name), _content((key, name), below.node)
        else:
            yield (key,), content_of(entry.node)


def _content(path: KeyPath, node: Node) -> Any:
    # The value of a variable is its text as written: 1.10 stays 1.10.
    if path[0] == "envs" and isinstance(node.value, int | float):
        return node.text
    return content_of(node)


def _line(root: Node, path: KeyPath) -> int | None:
    entry: Entry = root.value[path[0]]
    if len(path) > 1:
        entry = entry.node.value[path[1]]
    return entry.line


def _without(
    lower: Mapping[KeyPath, Default], higher: Mapping[KeyPath, Any]
) -> dict[KeyPath, Default]:
    """Return the values of `lower` that `higher` does not replace."""
    tops = {path[0] for path in higher if len(path) > 1}
    chosen = {path for key in _CHOICES for path in _chosen_keys(higher.get(key))}
    return {
        path: default
        for path, default in lower.items()
        if path not in higher
        and path[:1] not in higher
        and not (len(path) == 1 and path[0] in tops)
        and not any(other in higher or other in chosen for other in _EXCLUDED_BY.get(path, ()))
        and (_SHARED.get(path[0], ""), *path[1:]) not in higher
        and not (path in _CHOICES and _chooses(default.value, higher))
    }


def _chooses(choices: Any, higher: Mapping[KeyPath, Any]) -> bool:
    """Whether one of the choices of machines would replace a resource of `higher`."""
    keys = _chosen_keys(choices)
    return any(path in higher for key in keys for path in (key, *_EXCLUDED_BY.get(key, ())))


def _chosen_keys(choices: Any) -> set[KeyPath]:
    """Return the keys of resources that choices of machines give."""
    found = choices if isinstance(choices, list | tuple) else ()
    return {("resources", key) for choice in found if isinstance(choice, dict) for key in choice}


def _set(text: str, top: str, used: Mapping[KeyPath, Default], own: Mapping[KeyPath, Any]) -> str:
    """Return the text with the values of `used` below `top`."""
    if (default := used.get((top,))) is not None:
        return set_key(text, top, default.value)
    new = {path[1]: each.value for path, each in used.items() if path[0] == top}
    old = {path[1]: value for path, value in own.items() if path[0] == top}
    if not old or any("." in name for name in new):
        return set_key(text, top, {**old, **new})
    for name, value in new.items():
        text = set_key(text, f"{top}.{name}", value)
    return text
