"""Extract the programs that other interpreters run: the worker, and the drivers' module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monarch_client.runner.scripts import read

if TYPE_CHECKING:
    from monarch_client.runner.base.config import NodeFolder

_RUNTIME = ("__init__.py", "admin.py", "attaching.py", "reporting.py")


def extract(folder: NodeFolder) -> None:
    """Write the programs to the folder where workers and drivers of this node find them."""
    for script in ("worker.py", "prepare_monarch.py", "serve_mesh_admin.py"):
        (folder.state / script).write_bytes(read(script))
    folder.runtime.mkdir(parents=True, exist_ok=True)
    (folder.runtime / "sitecustomize.py").write_bytes(read("whole_lines.py"))
    package = folder.runtime / "mportal_runtime"
    package.mkdir(parents=True, exist_ok=True)
    for name in _RUNTIME:
        (package / name).write_bytes(read("mportal_runtime/" + name))
