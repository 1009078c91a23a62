"""Signal to the runner on this node that this driver has meshes to watch.

Monarch's mesh admin does not run in the driver: a Python program that ends while one starts may be
ended by SIGABRT. Nothing that goes wrong here may harm the driver.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

FILE_VARIABLE = "MPORTAL_WATCH_FILE"
# "0": the meshes are not watched. For the user to set, in front of the driver's command.
SWITCH_VARIABLE = "MPORTAL_MESH_ADMIN"
_OFF = {"0", "false", "no", "off"}


class Admin:
    """The signal file, which exists from the driver's first mesh until it ends its meshes."""

    def __init__(self) -> None:
        self._file: Path | None = None
        self._is_over = False

    def start(self) -> None:
        """Have the meshes watched, unless the user disabled it. Repeated calls do nothing."""
        file = os.environ.get(FILE_VARIABLE)
        is_off = os.environ.get(SWITCH_VARIABLE, "").strip().lower() in _OFF
        if self._file or self._is_over or not file or is_off:
            return
        self._file = Path(file)
        with contextlib.suppress(OSError):
            self._file.touch()

    def end(self) -> None:
        """End the watch: meshes that do not answer from now on are no loss."""
        self._is_over = True
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()
            self._file = None
