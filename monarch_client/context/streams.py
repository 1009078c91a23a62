"""The standard output and error of an executor, which outlive what a call does to them."""

from __future__ import annotations

import sys
from contextlib import suppress

_DESCRIPTORS = {"stdout": 1, "stderr": 2}


def flush_streams() -> None:
    """Flush both after a call, and open those again that the call has closed."""
    for name, descriptor in _DESCRIPTORS.items():
        stream = getattr(sys, name)
        # None, a stream of the user's own, or a reader that has gone.
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
        if getattr(stream, "closed", False):
            _reopen(name, descriptor)


def _reopen(name: str, descriptor: int) -> None:
    former = getattr(sys, f"__{name}__")
    with suppress(OSError):  # the call has closed the descriptor itself
        stream = open(  # noqa: SIM115 - open until the process ends
            descriptor,
            "w",
            encoding=former.encoding if former else "utf-8",
            errors=former.errors if former else "backslashreplace",
            closefd=False,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
