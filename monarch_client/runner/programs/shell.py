"""Run scripts of a job as SkyPilot does: in the work directory, after ~/.bashrc, without -e."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from monarch_client.runner.base.small_files import write_private
from monarch_client.runner.programs import repository
from monarch_client.runner.programs.startup import after_bashrc

if TYPE_CHECKING:
    from typing import Mapping

    from monarch_client.runner.base.config import AttemptConfig, NodeFolder
    from monarch_client.runner.base.processes import Command, OnExit, OnPieces
    from monarch_client.runner.place import Place

# The scripts that a node may run. bash opens its messages with the name: "run: line 3: ...".
WORKDIR, SETUP, RUN = "workdir", "setup", "run"
_CANNOT_START_CODE = 127
# Every user of a machine can read arguments, and scripts may hold secrets. `bash FILE` would not
# do: `cd "$(dirname "$0")"` would lead out of the work directory. Without the first command, a
# file that cannot be read would count as an empty script, which succeeds.
_READ_AND_RUN = ': <{file} || exit {code}; eval "$(<{file})"'


def write_scripts(config: AttemptConfig, folder: NodeFolder) -> None:
    """Write the scripts to files of the job's user, before any of them can fill the disk."""
    write_private(folder.script(WORKDIR), repository.SCRIPT)
    write_private(folder.script(SETUP), config.setup or "")
    write_private(folder.script(RUN), config.run)


def start_shell(
    place: Place, name: str, env: Mapping[str, str], on_pieces: OnPieces, on_exit: OnExit
) -> Command | None:
    """Start a script; if that fails, report it and call `on_exit` at once."""
    cwd = place.folder.workdir
    file = shlex.quote(str(place.folder.script(name)))
    command = _READ_AND_RUN.format(file=file, code=_CANNOT_START_CODE)
    if name != WORKDIR:
        own = frozenset([*place.config.envs, *place.config.secrets])
        command = after_bashrc(command, env, own)
    try:
        return place.children.start(
            ["bash", "-c", command, name], cwd=cwd, env=env, on_pieces=on_pieces, on_exit=on_exit
        )
    except OSError as error:
        place.recorder.remark(f"bash cannot be started in {cwd}: {error}")
        on_exit(_CANNOT_START_CODE)
        return None
