"""Extract the programs that other interpreters run: the worker, and the drivers' modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monarch_client.runner.scripts import read

if TYPE_CHECKING:
    from typing import Sequence

    from monarch_client.runner.base.config import NodeFolder

_RUNTIME = (
    "__init__",
    "admin",
    "attaching",
    "logging_metrics",
    "portal",
    "reloading",
    "reporting",
    "requesting",
    "tracebacks",
)
_PROXIES = (
    "__init__",
    "__main__",
    "arrays",
    "channel",
    "classes",
    "codec",
    "containers",
    "driver",
    "failures",
    "in_flight",
    "meshes",
    "outbox",
    "session",
    "shapes",
    "spill",
)


def extract(folder: NodeFolder) -> None:
    """Write the programs to the folder where workers and drivers of this node find them."""
    for script in ("worker.py", "prepare_monarch.py", "serve_mesh_admin.py"):
        (folder.state / script).write_bytes(read(script))
    folder.runtime.mkdir(parents=True, exist_ok=True)
    (folder.runtime / "sitecustomize.py").write_bytes(read("whole_lines.py"))
    (folder.runtime / "mportal_code.py").write_bytes(read("current_code.py"))
    _extract_package(folder, "mportal_runtime", _RUNTIME)


def extract_proxies(folder: NodeFolder) -> None:
    """Write the driver of mesh proxies beside them, which only jobs with a gateway need."""
    _extract_package(folder, "mportal_proxies", _PROXIES)


def _extract_package(folder: NodeFolder, package: str, modules: Sequence[str]) -> None:
    target = folder.runtime / package
    target.mkdir(parents=True, exist_ok=True)
    for module in modules:
        (target / f"{module}.py").write_bytes(read(f"{package}/{module}.py"))
