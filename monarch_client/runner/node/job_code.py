"""The code that a job starts with, as the first generation of the code that laptops send."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import CodeError
from monarch_client.runner.code.generations import Generations

if TYPE_CHECKING:
    from monarch_client.runner.base.config import NodeFolder


class JobCode:
    """The work directory, first recorded, then adopted. A problem never fails the job."""

    def __init__(self, folder: NodeFolder) -> None:
        # The reason why code cannot be sent to this node; "" if it can.
        self.problem = ""
        self._folder = folder
        self._generations: Generations | None = None
        self._tree = ""

    def record(self) -> None:
        """Record the code, before anything else is put beside it."""
        try:
            self._generations = Generations(self._folder.code, self._folder.workdir)
            self._tree = self._generations.record()
        except Exception as error:  # noqa: BLE001
            self._give_up(error)

    def adopt(self) -> None:
        """Make the work directory a link to the first generation."""
        if self._generations is None or self.problem:
            return
        try:
            self._generations.adopt(self._tree)
        except Exception as error:  # noqa: BLE001
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.problem = str(error) or repr(error)
        if self._generations is not None:
            with contextlib.suppress(OSError, CodeError):
                self._generations.discard()
