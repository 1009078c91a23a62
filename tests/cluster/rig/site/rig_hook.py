"""The import hook that loads `rig_cloud` wherever SkyPilot is imported in the rig (see rig.pth).

A cloud outside SkyPilot has to be known to clients as well as to the server: what a task may name,
and what comes back in pickles. This way neither needs to be configured.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def name_the_cloud(constants: ModuleType) -> None:
    """Add `rig` to the cloud names: SkyPilot reads its configuration while it is imported.

    It refuses clouds that it does not know.
    """
    constants.ALL_CLOUDS = (*constants.ALL_CLOUDS, "rig")


def load_the_cloud(_sky: ModuleType) -> None:
    importlib.import_module("rig_cloud")


AFTER = {"sky.skylet.constants": name_the_cloud, "sky": load_the_cloud}


class AfterImport:
    """A finder that finds modules as usual, and calls a module's entry of AFTER after it."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        then = AFTER.pop(name, None)
        spec = PathFinder.find_spec(name, path, target) if then is not None else None
        if then is None or spec is None or spec.loader is None:
            return None
        run_module = spec.loader.exec_module

        def run_both(module: ModuleType) -> None:
            run_module(module)
            then(module)

        spec.loader.exec_module = run_both
        return spec


sys.meta_path.insert(0, AfterImport)
