"""A session that keeps the code of its job equal to a folder of this machine."""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from monarch_client.errors import ArchiveError
from monarch_client.gateway.code_sync import CodeSync, SyncResult
from monarch_client.gateway.linked_session import LinkedSession, MeshesT
from monarch_client.gateway.opening import FOLDER_VARIABLE, Opening
from monarch_client.runner.scripts.mportal_runtime.reloading import drop_modules

log = logging.getLogger("monarch_client.gateway")

Folder = str | os.PathLike[str]
# What happens to programs after a sync that changed something.
Reload = Literal["procs", "modules"]
HookT = TypeVar("HookT", bound=Callable[..., object])


def folder_of(sync: Folder | bool | None) -> Folder | None:  # noqa: FBT001 - as `connect` has it
    """Return the folder of `connect(sync=...)`; by default that of the environment."""
    if sync is None:
        return os.environ.get(FOLDER_VARIABLE) or None
    if isinstance(sync, bool):
        return "." if sync else None
    return sync


class SyncedSession(LinkedSession[MeshesT]):
    """A session whose job can get new code. `folder`: sync it before the program is attached."""

    def __init__(
        self, opened: Opening, away_limit_s: float | None, folder: Folder | None = None
    ) -> None:
        self._code: CodeSync | None = None
        self._first_folder = folder
        self._hooks: list[Callable[[MeshesT], object]] = []
        super().__init__(opened, away_limit_s)

    def sync(self, folder: Folder | None = None, *, reload: Reload | None = None) -> SyncResult:
        """Send the changes in a folder, by default that of the last sync, to all nodes.

        All nodes switch to it, or none. `reload`, if something has changed: "procs" ends the procs
        of this program and calls the functions of `after_sync`; "modules" drops the changed
        modules, and those that use them, in the procs. Both drop them in this process.
        ArchiveError, SyncError, NodeStreamError: nothing has changed anywhere.
        """
        if reload not in {None, "procs", "modules"}:
            raise ValueError(f'reload is "procs", "modules" or None, not {reload!r}')
        code = self._code_of(folder)
        result = code.run()
        if result.changed and reload is not None:
            dropped = drop_modules(str(code.folder), result.changed)
            log.info("Reloading %s: %s", reload, ", ".join(dropped) or "no module of this program")
            if reload == "modules":
                self._drop_modules(result.changed)
            else:
                self._end_procs()
                for hook in self._hooks:
                    hook(self.meshes)
        return result

    def after_sync(self, hook: HookT) -> HookT:
        """Call `hook` with the meshes, now and whenever `sync(reload="procs")` has ended the procs.

        It spawns procs and actors. It imports their classes itself, since a sync drops modules.
        """
        self._hooks.append(hook)
        hook(self.meshes)
        return hook

    def close(self) -> None:
        """Stop what this program spawned, and end the session. The workers go on."""
        if self._code is not None:
            self._code.close()
        super().close()

    def _begin(self) -> None:
        if self._first_folder is not None:
            result = self._code_of(self._first_folder).run()
            log.info("%s has the code: %s files were sent.", self.job, result.files)

    def _code_of(self, folder: Folder | None) -> CodeSync:
        if folder is None and self._code is None:
            raise ArchiveError('Which folder? Name it, such as sync("."), or connect(sync=".").')
        if folder is not None:
            code = CodeSync(self, folder)
            if self._code is None or code.folder != self._code.folder:
                self._code, former = code, self._code
                if former is not None:
                    former.close()
        assert self._code is not None  # noqa: S101 - for the type checker
        return self._code

    @abstractmethod
    def _end_procs(self) -> None:
        """End the procs that this program has spawned."""

    @abstractmethod
    def _drop_modules(self, changed: Sequence[str]) -> None:
        """Drop the modules of changed files in the procs that this program has spawned."""
