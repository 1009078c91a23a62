"""Tells the runner why a driver failed: its exception, or a fault that Monarch reported.

The report is a file named by the environment; elsewhere than in a driver nothing is written.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Iterator

REPORT_VARIABLE = "MPORTAL_REPORT_FILE"
_MAX_TEXT = 4000
_MAX_CHAIN = 20
_faults: list[str] = []


def report_uncaught() -> None:
    """Report the exception that ends this program, then let it be printed as before."""
    if os.environ.get(REPORT_VARIABLE):
        previous = sys.excepthook

        def hook(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            write_report(error, trace)
            previous(kind, error, trace)

        sys.excepthook = hook


def note_fault(text: str) -> None:
    """Remember a fault that Monarch reported, and report it in case nothing else will be."""
    _faults.append(text)
    _write({"kind": "monarch", "error": _first_line(text), "fault": text})


def has_fault() -> bool:
    """Whether Monarch has reported a fault."""
    return bool(_faults)


def write_report(error: BaseException, trace: TracebackType | None) -> None:
    """Describe `error`. A report that cannot be written must not hide the error itself."""
    fields = {
        "kind": _kind_of(error),
        "error": describe(error),
        "last_line": _last_line(error, trace),
        "fault": "\n".join(_faults),
    }
    fields.update(getattr(error, "report_fields", {}))
    _write(fields)


def describe(error: BaseException) -> str:
    """Type and message; of an error in an actor, those of the original."""
    original = getattr(error, "exception", None)
    if type(error).__name__ == "ActorError" and isinstance(original, BaseException):
        return f"{describe(original)} (in an actor)"
    message = _first_line(str(error))
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def _kind_of(error: BaseException) -> str:
    for link in _chain(error):
        name = type(link).__name__
        if name == "ActorError":
            return "user"
        if name == "SupervisionError":
            return "user" if _holds_traceback(str(link)) else "monarch"
        if name == "PanicException" or (_faults and isinstance(link, KeyboardInterrupt)):
            return "monarch"
    return "user"


def _holds_traceback(text: str) -> bool:
    # Monarch says "supervision" also of an actor whose own code raised where nobody could take
    # the exception: then the text carries its traceback.
    return "Traceback (most recent call last)" in text


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(_MAX_CHAIN):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__


def _last_line(error: BaseException, trace: TracebackType | None) -> str:
    frames = traceback.extract_tb(trace)
    if not frames:
        return ""
    last = frames[-1]
    where = f"{last.filename}, line {last.lineno}, in {last.name}"
    return f"{where}: {last.line}" if last.line else where


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _write(fields: dict[str, Any]) -> None:
    path = os.environ.get(REPORT_VARIABLE)
    if not path:
        return
    bounded = {name: str(value)[:_MAX_TEXT] for name, value in fields.items()}
    new = Path(path + ".new")
    # Without a report the runner still has the exit code: no reason to hide the error itself.
    with contextlib.suppress(OSError):
        new.write_text(json.dumps(bounded), encoding="utf-8")
        new.replace(path)
