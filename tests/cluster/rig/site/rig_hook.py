"""Loads `rig_cloud` wherever SkyPilot is imported inside the rig (see rig.pth).

A cloud outside SkyPilot has to be known to clients as well as to the server: what a task may name,
and what comes back in pickles. This way neither needs to be told.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class AfterSky:
    """A finder that finds the package `sky` as ever, and loads the cloud once it has run."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "sky":
            return None
        sys.meta_path.remove(AfterSky)
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        run_sky = spec.loader.exec_module

        def run_both(module: ModuleType) -> None:
            run_sky(module)
            importlib.import_module("rig_cloud")

        spec.loader.exec_module = run_both
        return spec


sys.meta_path.insert(0, AfterSky)
