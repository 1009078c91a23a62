"""The standard output and error of an executor, which outlive what a call does to them.

In a job of a portal each line begins with the call that writes it, as in "(train, pid 71) ...": the
lines of all tasks of a host are in the log of its rank.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

from monarch_client.context.running_call import running_call

_DESCRIPTORS = {"stdout": 1, "stderr": 2}
# In the environment of a job's programs.
_JOB_VARIABLE = "MPORTAL_JOB_ID"
_MOST_NAME_CHARS = 100
_has_labels: list[bool] = []


class LabeledStream(io.TextIOWrapper):
    """A stream whose lines begin with the name of the call that writes them."""

    _is_in_line = False

    def write(self, text: str, /) -> int:
        """Write text; return its length, without labels."""
        if text:
            label = _label()
            # An end of a line begins no other: what writes that one may be another call.
            labeled = text[:-1].replace("\n", f"\n{label}") + text[-1]
            super().write(labeled if self._is_in_line else label + labeled)
            self._is_in_line = text[-1] != "\n"
        return len(text)


def _label() -> str:
    """Return the beginning of the lines that the running call writes."""
    call = running_call()
    # Without "=": what has one is read as a value that the program reports.
    return f"({call.name[:_MOST_NAME_CHARS]}, pid {os.getpid()}) " if call.id else ""


def label_lines() -> None:
    """Let lines begin with the name of their call, in a job of a portal."""
    if _JOB_VARIABLE in os.environ:
        _has_labels.append(True)
        for name, descriptor in _DESCRIPTORS.items():
            _reopen(name, descriptor)


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
    is_labeled = bool(_has_labels)
    with suppress(OSError):  # the call has closed the descriptor itself
        # Open until the process ends.
        buffer = open(descriptor, "wb", closefd=False)  # noqa: SIM115
        stream = (LabeledStream if is_labeled else io.TextIOWrapper)(
            buffer,
            encoding=former.encoding if former else "utf-8",
            errors=former.errors if former else "backslashreplace",
            line_buffering=is_labeled,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
