"""Files of the bundle that other interpreters run: the worker, and the drivers' module."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monarch_client.runner.config import NodeFolder

_PACKAGE = "monarch_client.runner"
_RUNTIME = ("__init__.py", "admin.py", "attaching.py", "reporting.py")


def extract(folder: NodeFolder) -> None:
    """Write them where workers and drivers of this node find them."""
    for script in ("worker.py", "prepare_monarch.py", "serve_mesh_admin.py"):
        (folder.state / script).write_bytes(read(script))
    folder.runtime.mkdir(parents=True, exist_ok=True)
    (folder.runtime / "sitecustomize.py").write_bytes(read("whole_lines.py"))
    package = folder.runtime / "mportal_runtime"
    package.mkdir(parents=True, exist_ok=True)
    for name in _RUNTIME:
        (package / name).write_bytes(read("mportal_runtime/" + name))


def read(name: str) -> bytes:
    """One file of this package, from the bundle or the source tree."""
    content = pkgutil.get_data(_PACKAGE, name)
    if content is None:
        raise FileNotFoundError(name)
    return content
