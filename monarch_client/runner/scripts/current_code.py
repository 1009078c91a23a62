"""Keep a Python program in the current generation of its job's code.

`sitecustomize` imports this as `mportal_code`. The work directory is a symbolic link that a sync
switches, but the kernel and Python resolve it: a process would inherit the directory of its
parent, and `sys.path` would lead to the generation that was current when it started.
"""

# No postponed annotations: users may run Pythons older than those the runner needs.

import os
import sys

WORKDIR = os.environ.get("MPORTAL_WORKDIR", "")
GENERATIONS = os.environ.get("MPORTAL_GENERATIONS", "")


def current_path(path: str) -> str:
    """Return a path through the work directory, if it leads into a generation."""
    if not path.startswith(GENERATIONS + os.sep):
        return path
    rest = path[len(GENERATIONS) + 1 :].partition(os.sep)[2]
    return os.path.join(WORKDIR, rest) if rest else WORKDIR  # noqa: PTH118 - pathlib is slow


class CurrentCode:
    """The first finder of imports, which finds nothing, and keeps `sys.path` current."""

    @staticmethod
    def find_spec(_name: str, _path: object = None, _target: object = None) -> None:
        """Replace what leads into a generation, before Python looks there."""
        for index, entry in enumerate(sys.path):
            if entry == "":
                sys.path[index] = _directory() or entry
            elif str(entry).startswith(GENERATIONS):
                sys.path[index] = current_path(str(entry))


def _directory() -> str:
    """Return the working directory through the link; "" if it is not in a generation."""
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:
        return ""
    path = current_path(here)
    return "" if path == here else path


def enter_current_code() -> None:
    """Move to the current generation, if the process starts in an older one."""
    path = _directory()
    if path and os.path.isdir(path):  # noqa: PTH112
        os.chdir(path)


if WORKDIR and GENERATIONS:
    sys.meta_path.insert(0, CurrentCode)
    enter_current_code()
