"""The processes that a program has spawned: end them, or have them import changed modules anew.

Imports monarch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from monarch.actor import Actor, endpoint

# All of them together: a host that is lost answers nothing.
STOP_S = 5.0
DROP_S = 30.0


class Reloader(Actor):  # type: ignore[misc]  # monarch has no types
    """An actor in each process of a mesh that drops changed modules."""

    @endpoint  # type: ignore[untyped-decorator]
    def drop(self, changed: Sequence[str]) -> list[str]:
        """Drop the modules of changed files; return their names."""
        import os  # noqa: PLC0415 - this runs where this module does not exist

        from mportal_runtime.reloading import (  # type: ignore[import-not-found] # noqa: PLC0415
            drop_modules,
        )

        dropped: list[str] = drop_modules(os.environ["MPORTAL_WORKDIR"], changed)
        return dropped


# Sent by value, as classes of the main module are: workers have no such module.
Reloader.__module__ = "__main__"


class SpawnedProcs:
    """The proc meshes that a program has spawned and not seen end."""

    def __init__(self) -> None:
        self._procs: list[Any] = []
        self._reloaders: list[Any] = []

    def add(self, procs: Any) -> None:
        """Note a proc mesh."""
        self._procs.append(procs)
        self._reloaders.append(None)

    def end(self) -> None:
        """End all of them."""
        procs, self._procs, self._reloaders = self._procs, [], []
        deadline = time.monotonic() + STOP_S
        for stopping in [each.stop() for each in procs]:
            # A mesh that has failed is over as well.
            with suppress(Exception):
                stopping.get(timeout=max(0.1, deadline - time.monotonic()))

    def drop_modules(self, changed: Sequence[str]) -> None:
        """Drop the modules of changed files in all processes."""
        for index, procs in enumerate(self._procs):
            if self._reloaders[index] is None:
                self._reloaders[index] = procs.spawn("mportal_reloader", Reloader)
        for dropping in [each.drop.call(list(changed)) for each in self._reloaders]:
            dropping.get(timeout=DROP_S)
