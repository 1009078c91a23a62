"""A session that keeps the code of its job equal to a folder of this machine."""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, NoReturn, TypeVar

from monarch_client.errors import ArchiveError
from monarch_client.gateway.code_sync import CodeSync, SyncResult
from monarch_client.gateway.linked_session import LinkedSession, MeshesT
from monarch_client.gateway.opening import FOLDER_VARIABLE, Opening
from monarch_client.runner.scripts.mportal_runtime.reloading import drop_modules
from monarch_client.sync.merging import Folder

log = logging.getLogger("monarch_client.gateway")

Folders = Folder | Sequence[Folder]
# What happens to programs after a sync that changed something.
Reload = Literal["procs", "modules"]
HookT = TypeVar("HookT", bound=Callable[..., object])


def folders_of(sync: Folders | bool | None) -> Folders | None:  # noqa: FBT001 - as `connect` has it
    """Return the folders of `connect(sync=...)`; by default that of the environment."""
    if sync is None:
        return os.environ.get(FOLDER_VARIABLE) or None
    if isinstance(sync, bool):
        return "." if sync else None
    return sync


class SyncedSession(LinkedSession[MeshesT]):
    """A session whose job can get new code. `folders`: sync them before the program is attached."""

    def __init__(
        self, opened: Opening, away_limit_s: float | None, folders: Folders | None = None
    ) -> None:
        self._code: CodeSync | None = None
        self._first_folders = folders
        self._hooks: list[Callable[[MeshesT], object]] = []
        super().__init__(opened, away_limit_s)

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse a name that the session does not have, and say where its meshes are."""
        what = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(what)
        raise AttributeError(
            f"{what}. The meshes are in `connect(...).meshes`, such as `.meshes.{name}`, or write: "
            "with connect(...) as meshes"
        )

    def sync(self, folders: Folders | None = None, *, reload: Reload | None = None) -> SyncResult:
        """Send the changes in folders, by default those of the last sync, to all nodes.

        All nodes switch to it, or none. `reload`, if something has changed: "procs" ends the procs
        of this program and calls the functions of `after_sync`; "modules" drops the changed
        modules, and those that use them, in the procs. Both drop them in this process.
        ArchiveError, SyncError, NodeStreamError: nothing has changed anywhere.
        """
        if reload not in {None, "procs", "modules"}:
            raise ValueError(f'reload is "procs", "modules" or None, not {reload!r}')
        code = self._code_of(folders)
        result = code.run()
        if result.changed and reload is not None:
            dropped = [
                name
                for folder in code.folders.folders
                for name in drop_modules(str(folder), code.folders.paths_in(folder, result.changed))
            ]
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
        if self._first_folders is not None:
            result = self._code_of(self._first_folders).run()
            log.info("%s has the code: %s files were sent.", self.job, result.files)

    def _code_of(self, folders: Folders | None) -> CodeSync:
        if folders is not None:
            code = CodeSync(self, folders)
            if self._code is None or code.folders.folders != self._code.folders.folders:
                self._code, former = code, self._code
                if former is not None:
                    former.close()
        if self._code is None:
            raise ArchiveError('Which folder? Name it, such as sync("."), or connect(sync=".").')
        return self._code

    @abstractmethod
    def _end_procs(self) -> None:
        """End the procs that this program has spawned."""

    @abstractmethod
    def _drop_modules(self, changed: Sequence[str]) -> None:
        """Drop the modules of changed files in the procs that this program has spawned."""
