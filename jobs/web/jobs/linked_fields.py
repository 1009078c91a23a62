"""Fields of the form that have to agree: nodes and meshes, and the kinds of work directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.web.jobs.form_entries import with_row
from monarch_client.spec.form_edits import field_of, set_field
from monarch_client.spec.locations import git_source

_NODES, _MESHES, _WORKDIR = "num_nodes", "portal.meshes", "workdir"


def set_linked_field(text: str, path: str, value: Any) -> str:
    """Return the text with one field set, and those that have to agree with it.

    yaml.YAMLError, FormError: as `form_edits.set_field`.
    """
    if path == _WORKDIR and (found := _repository(value)):
        value = found
    elif path.startswith(f"{_WORKDIR}.") and (found := _repository(field_of(text, _WORKDIR))):
        text = set_field(text, _WORKDIR, found)
    text = set_field(text, path, value)
    return _with_mesh_of(text, value) if path == _NODES else text


def set_linked_row(text: str, path: str, change: Mapping[str, str]) -> str:
    """Return the text with one row of a field changed, and the number of nodes that it makes.

    yaml.YAMLError, FormError: as `form_edits.set_field`.
    """
    text = with_row(text, path, change)
    return _with_nodes_of_meshes(text) if path == _MESHES else text


def linked_value(text: str, path: str) -> Any:
    """Return the value of a field; a git repository has the fields of its URL and its ref only."""
    if path != _WORKDIR and not path.startswith(f"{_WORKDIR}."):
        return field_of(text, path)
    workdir = field_of(text, _WORKDIR)
    source = _repository(workdir) or workdir
    if path == _WORKDIR:
        return None if isinstance(source, dict) else source
    return source.get(path.removeprefix(f"{_WORKDIR}.")) if isinstance(source, dict) else None


def _repository(value: Any) -> dict[str, str] | None:
    return git_source(value) if isinstance(value, str) else None


def _with_mesh_of(text: str, count: Any) -> str:
    """Give the only mesh, if there is one, all nodes."""
    meshes = field_of(text, _MESHES)
    if not isinstance(meshes, dict) or len(meshes) != 1 or not isinstance(count, int):
        return text
    return set_field(text, f"{_MESHES}.{next(iter(meshes))}", count)


def _with_nodes_of_meshes(text: str) -> str:
    """Set the number of nodes, where the text has one, to that of the meshes."""
    meshes = field_of(text, _MESHES)
    sizes = [str(size) for size in meshes.values()] if isinstance(meshes, dict) else []
    if not sizes or field_of(text, _NODES) is None or not all(map(str.isdecimal, sizes)):
        return text
    return set_field(text, _NODES, sum(map(int, sizes)))
