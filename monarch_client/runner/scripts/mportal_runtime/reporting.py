"""Report to the runner why a driver failed: its exception, or a fault of Monarch.

The report is a file named by the environment; elsewhere than in a driver nothing is written.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from .tracebacks import HEAD, exceptions_in, location_in

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Iterator

REPORT_VARIABLE = "MPORTAL_REPORT_FILE"
# A fault often comes as an exception too, a moment later; that one says more.
_FAULT_WAITS_S = 1.0
_MAX_TEXT = 3000
_MAX_CHAIN = 20
_MOST_PRINTED = 5
# A bare RuntimeError of Monarch's: the actor is known to be dead before its first call.
_SPAWN_FAILED = "error spawning actor mesh"
_CALL = re.compile(r"Actor call (\S+) failed\b")
# The name of its mesh and a position in it, after its class; or a name alone.
_ACTOR = re.compile(r"\bactor <root>\.(?:<[\w.]+ (\w+)\{([^{}]*)\}|(\w+))")


class _Ending:
    """The state of this program's end, as far as it is known."""

    faults: list[str] = []  # noqa: RUF012 - one program, one end
    is_reported = False
    # Monarch's threads and the main one may have something to report at the same moment.
    lock = threading.RLock()


def report_uncaught() -> None:
    """Report the exception that ends this program, then let it be printed as before."""
    if not os.environ.get(REPORT_VARIABLE):
        return
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        write_report(error)
        previous(kind, error, trace)

    sys.excepthook = hook


def note_fault(text: str) -> None:
    """Record a fault that no call of the driver gets, and interrupt the driver as Monarch does.

    A driver that is ending already goes on to end.
    """
    with _Ending.lock:
        is_first = not _Ending.faults
        _Ending.faults.append(text)
        if _Ending.is_reported:
            return
        if len(_Ending.faults) <= _MOST_PRINTED:
            # An error that is not awaited has its traceback nowhere else.
            with contextlib.suppress(Exception):  # a program may have closed its stderr
                sys.stderr.write(f"Monarch reported a fault:\n{_without_stack(text)}\n")
        if not is_first:
            return
        _write({"kind": _kind_of_fault(text), "error": _fault_in_short(text), "trace": text})
    timer = threading.Timer(_FAULT_WAITS_S, _interrupt)
    timer.daemon = True
    timer.start()


def has_fault() -> bool:
    """Whether Monarch has reported a fault."""
    return bool(_Ending.faults)


def end() -> None:
    """Ignore later faults: the program ends by itself."""
    _Ending.is_reported = True


def _interrupt() -> None:
    # A true signal, because only that ends a sleep or a wait of the main thread.
    if not _Ending.is_reported:
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)


def write_report(error: BaseException) -> None:
    """Write the report on the exception that ends the program. Only the first report counts."""
    with _Ending.lock:
        if not _Ending.is_reported:
            _Ending.is_reported = True
            _write(_description(error))


def _description(error: BaseException) -> dict[str, Any]:
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    fault = "\n".join(_Ending.faults)
    is_fault = isinstance(error, KeyboardInterrupt) and bool(fault)
    fields = {
        "kind": _kind_of_fault(fault) if is_fault else _kind_of(error),
        "error": _fault_in_short(fault) if is_fault else describe(error),
        "trace": fault if is_fault else trace,
        "place": location_in(fault if is_fault else trace),
    }
    fields.update(getattr(error, "report_fields", {}))
    return fields


def describe(error: BaseException) -> str:
    """Type and message; of an error in an actor, those of the original."""
    name, text = type(error).__name__, str(error)
    is_monarchs = name in {"ActorError", "SupervisionError"} or text.startswith(_SPAWN_FAILED)
    if is_monarchs and HEAD in text:
        return _exception_in(text)
    message = _first_line(text)
    return f"{name}: {message}" if message else name


def _kind_of(error: BaseException) -> str:
    for link in _chain(error):
        name = type(link).__name__
        if name == "ActorError":
            return "user"
        if name == "SupervisionError":
            return _kind_of_fault(str(link))
        if name == "PanicException":
            return "monarch"
    return "user"


def _kind_of_fault(text: str) -> str:
    # Monarch says "supervision" also of an actor whose own code raised where no caller could take
    # the exception: then the text carries its traceback.
    return "user" if HEAD in text else "monarch"


def _fault_in_short(text: str) -> str:
    return _exception_in(text) if HEAD in text else _first_line(text)


def _exception_in(text: str) -> str:
    """Return the exception at the end of the first traceback in `text`."""
    found = next(exceptions_in(text), None)
    where = _actor_in(text)
    return f"{found.error} (in {where})" if found else f"an error in {where}"


def _actor_in(text: str) -> str:
    """Return the actor that a text of Monarch names, with the endpoint if it was called."""
    if call := _CALL.search(text):
        return call.group(1)
    actor = _ACTOR.search(text)
    if actor is None:
        return "an actor"
    mesh, position, name = actor.groups()
    at = (position or "").replace("'", "").replace(": ", " ")
    return f"actor {mesh} at {at}" if at else f"actor {mesh or name}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(_MAX_CHAIN):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _without_stack(text: str) -> str:
    """Return a text without Monarch's own stack, which may follow it."""
    return text.partition("\n\nStack backtrace:")[0]


def _write(fields: dict[str, Any]) -> None:
    path = os.environ.get(REPORT_VARIABLE)
    if not path:
        return
    # Keep the end of a trace, without Monarch's own stack, which may follow it.
    bounded = {name: _without_stack(str(value))[-_MAX_TEXT:] for name, value in fields.items()}
    new = Path(path + ".new")
    # Without a report the runner still has the exit code: no reason to hide the error itself.
    with contextlib.suppress(OSError):
        new.write_text(json.dumps(bounded), encoding="utf-8")
        new.replace(path)
