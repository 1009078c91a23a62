"""Users' scripts, as SkyPilot runs them: by bash, in the work directory, without -e."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Mapping

    from monarch_client.runner.place import Place
    from monarch_client.runner.processes import Command, OnExit, OnPieces

_CANNOT_START_CODE = 127


def start_shell(
    place: Place, script: str, env: Mapping[str, str], on_pieces: OnPieces, on_exit: OnExit
) -> Command | None:
    """Start `script`; where that can't be done, say so and call `on_exit` at once."""
    cwd = place.folder.workdir
    try:
        return place.children.start(
            ["bash", "-c", script], cwd=cwd, env=env, on_pieces=on_pieces, on_exit=on_exit
        )
    except OSError as error:
        place.recorder.remark(f"bash cannot be started in {cwd}: {error}")
        on_exit(_CANNOT_START_CODE)
        return None
