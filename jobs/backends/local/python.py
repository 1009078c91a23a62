"""The Python of one node: an environment of its own over the portal's packages.

`pip install` in a job's `setup` lands in the node's directory; the portal's packages are visible
and stay as they are.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

# `pip` of the portal's environment, but working on the node's.
_PIP = '#!/bin/sh\nexec "$(dirname "$0")/python3" -m pip "$@"\n'
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class PortalPython:
    """The interpreter and the packages that the portal itself runs on, and that jobs may use."""

    interpreter: Path  # the real file, not a link of some environment
    prefixes: tuple[Path, ...]  # directories that must be visible for it to work
    site_packages: tuple[Path, ...]
    scripts: Path

    @classmethod
    def current(cls) -> PortalPython:
        """Describe the Python of this process."""
        base = getattr(sys, "_base_executable", "") or sys.executable
        interpreter = Path(base).resolve()
        scheme = sysconfig.get_paths()
        packages = dict.fromkeys((Path(scheme["purelib"]), Path(scheme["platlib"])))
        # `import monarch_client` must work in a job, also where the portal runs from a checkout.
        client = Path(__file__).resolve().parents[3] / "monarch_client"
        prefixes = dict.fromkeys((interpreter.parent.parent, Path(sys.prefix).resolve(), client))
        return cls(interpreter, tuple(prefixes), tuple(packages), Path(scheme["scripts"]))


def make_environment(root: Path, python: PortalPython) -> None:
    """Lay out an environment in `root`, as `python -m venv` would without pip. May be repeated."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = root / "lib" / version / "site-packages"
    packages.mkdir(parents=True, exist_ok=True)
    (root / "bin").mkdir(exist_ok=True)
    for name in ("python", "python3", version):
        _link(root / "bin" / name, python.interpreter)
    _link(root / "lib64", Path("lib"))
    (root / "pyvenv.cfg").write_text(
        f"home = {python.interpreter.parent}\n"
        "include-system-site-packages = false\n"
        f"version = {'.'.join(map(str, sys.version_info[:3]))}\n"
    )
    lines = (f"import site; site.addsitedir({str(path)!r})" for path in python.site_packages)
    (packages / "portal.pth").write_text("\n".join(lines) + "\n")
    pip = root / "bin" / "pip"
    pip.write_text(_PIP)
    pip.chmod(0o755)


def search_path(environment: Path, python: PortalPython) -> str:
    """Return PATH for a node's processes."""
    return f"{environment / 'bin'}:{python.scripts}:{_SYSTEM_PATH}"


def _link(link: Path, target: Path) -> None:
    if not link.is_symlink():
        link.symlink_to(target)
