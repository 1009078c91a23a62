"""The versions that must be the same here and on the workers.

Monarch sends objects between both: with another Python its processes crash, with another
torchmonarch they misunderstand each other.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from monarch_client.gateway.errors import VersionMismatchError

PACKAGE = "torchmonarch"


def refuse_others(mesh: Mapping[str, Any]) -> None:
    """Compare with the versions in the message of the job's head. VersionMismatchError."""
    refuse_other_python(mesh)
    installed, package = installed_version(), str(mesh.get(PACKAGE, ""))
    if package and installed != package:
        advice = f"Run: pip install {PACKAGE}=={package}"
        raise VersionMismatchError(PACKAGE, installed or "(not installed)", package, advice)


def refuse_other_python(mesh: Mapping[str, Any]) -> None:
    """Compare the minor version of Python, which pickles need. VersionMismatchError."""
    python = str(mesh.get("python", ""))
    minor = ".".join(python.split(".")[:2])
    here = "{}.{}".format(*sys.version_info[:2])
    if python and minor != here:
        advice = f"Run it with Python {minor}, such as: uv run --python {minor} PROGRAM"
        raise VersionMismatchError("Python", here, minor, advice)


def installed_version() -> str:
    """Return the version of torchmonarch here; "" if there is none."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return ""
