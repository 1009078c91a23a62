"""The program on each host of TPU slices: call the function, and write its outcome to the log.

An outcome travels as lines of stdout, `monarch-context-value INDEX/COUNT BASE64`; the portal adds
the rank. An error of the function has a word of its own, which the job's log policy looks for.
"""

from __future__ import annotations

import base64
import os
import pickle
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from monarch_client.context import pickling, values
from monarch_client.context.api import TaskApi
from monarch_client.context.errors import ResultTooLargeError
from monarch_client.context.values import Payload, error_of, to_error

FUNCTION_FILE = "function.pickle"
VALUE, ERROR = "monarch-context-value", "monarch-context-error"
MAX_BYTES = 1024 * 1024
# With its head, a line is written to a pipe at once: below 4096 bytes no other writer divides it.
_PART = 3000
_LINE = re.compile(rf"({VALUE}|{ERROR}) (\d+)/(\d+) (\S+)")


class Outcome(NamedTuple):
    """The result of the function on one host, or the error that it raised."""

    value: Any
    error: Exception | None


def outcome_lines(fn: Callable[[TaskApi], Any], context: TaskApi) -> tuple[list[str], bool]:
    """Call the function; return the lines of its outcome, and whether it succeeded."""
    where = f"on {socket.gethostname()}, process {os.getpid()}"
    try:
        data = pickling.dumps(fn(context))
        if len(data) > MAX_BYTES:
            raise ResultTooLargeError(
                f"The result has {len(data)} bytes, and at most {MAX_BYTES} can be returned. "
                "Write it to a bucket, and return its name."
            )
    except Exception as error:  # noqa: BLE001 - whatever the function raises goes to its caller
        return list(_lines(ERROR, to_error(error, where).data)), False
    return list(_lines(VALUE, data)), True


def read_outcomes(lines: Iterable[tuple[int, str]]) -> dict[int, Outcome]:
    """Return the complete outcomes by rank, from the lines of a log with their ranks."""
    parts: dict[tuple[int, str], dict[int, str]] = {}
    found: dict[int, Outcome] = {}
    for rank, line in lines:
        if match := _LINE.fullmatch(line.strip()):
            of_rank = parts.setdefault((rank, match[1]), {})
            of_rank[int(match[2])] = match[4]
            if len(of_rank) == int(match[3]):
                data = base64.b64decode("".join(of_rank[each] for each in sorted(of_rank)))
                found[rank] = _outcome(match[1], data)
    return found


def main() -> None:
    """Call the function of the job's folder with a context of this host."""
    from monarch_client.context.current import set_job_context  # noqa: PLC0415
    from monarch_client.context.job_context import JobContext  # noqa: PLC0415

    with JobContext() as context:
        set_job_context(context)
        lines, succeeded = outcome_lines(_call_pickled(Path(FUNCTION_FILE)), context)
    # The first end of line: the function may have left its last line open.
    for line in ("", *lines):
        os.write(sys.stdout.fileno(), f"{line}\n".encode())
    sys.exit(0 if succeeded else 1)


def _call_pickled(file: Path) -> Callable[[TaskApi], Any]:
    """Return a function that unpickles and calls the function in `file`."""

    def call(context: TaskApi) -> Any:
        return pickle.loads(file.read_bytes())(context)  # noqa: S301 - the user's own job

    return call


def _lines(word: str, data: bytes) -> Iterator[str]:
    text = base64.b64encode(data).decode()
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    for index, part in enumerate(parts, 1):
        yield f"{word} {index}/{len(parts)} {part}"


def _outcome(word: str, data: bytes) -> Outcome:
    if word == VALUE:
        return Outcome(pickle.loads(data), None)  # noqa: S301 - of this user's own job
    return Outcome(None, error_of(Payload(values.ERROR, data), None))


if __name__ == "__main__":
    main()
