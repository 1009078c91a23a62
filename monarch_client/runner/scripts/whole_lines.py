"""Make Python programs of a job write each line when it is complete, and in one piece.

The runner puts this on their PYTHONPATH as `sitecustomize`. Python by itself holds back what it
writes to a pipe; unbuffered it writes a line and its end apart, so that processes which share a
pipe mix their lines. A `sitecustomize` of the environment's own still runs.
"""

# No postponed annotations: users may run Pythons older than those the runner needs.

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder


def show_lines_when_complete() -> None:
    """Flush at each end of a line. What a user set unbuffered stays so."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and not getattr(stream, "write_through", False):
            reconfigure(line_buffering=True)


def run_the_next(name: str = "sitecustomize") -> None:
    """Run the next module of this name on the path, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100
    spec = PathFinder.find_spec(name, others)
    get_code = getattr(spec and spec.loader, "get_code", None)
    if spec is not None and get_code is not None:
        module = type(sys)(name)
        module.__file__ = spec.origin
        exec(get_code(name), module.__dict__)  # noqa: S102 - what Python would have run


if __name__ == "sitecustomize":
    show_lines_when_complete()
    if os.environ.get("MPORTAL_GENERATIONS"):
        import_module("mportal_code")
    run_the_next()
