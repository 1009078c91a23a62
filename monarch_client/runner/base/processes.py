"""Users' processes: each starts in its own session, and ends with all its descendants.

Nothing here knows what the processes are for.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING

from monarch_client.runner.base.lines import LineReader
from monarch_client.runner.base.process_tree import descendants, signal_all
from monarch_client.runner.vocabulary import streams
from monarch_client.runner.vocabulary.monarch_lines import is_own_line

if TYPE_CHECKING:
    from typing import Callable, Mapping, Sequence

    from monarch_client.runner.base.lines import Piece
    from monarch_client.runner.base.loop import MainLoop, Timer

    OnPieces = Callable[[str, list[Piece]], None]
    OnExit = Callable[[int], None]

# Without anything to read, and in all.
_DRAIN_S = 0.3
_LONGEST_DRAIN_S = 10.0
_FIRST_LOOK_S = 0.01
_LAST_LOOK_S = 0.2
_KILLS = 50
# When a machine is taken away, all its processes get SIGTERM, in any order. A program may exit by
# it before the runner gets its own: that exit is not a failure of the program.
_SIGTERM_WAITS_S = 1.0
# A traceback, and what torchrun prints after it.
_EVIDENCE_LINES = 60
_EVIDENCE_LINE_LENGTH = 400


def exit_code_of(returncode: int) -> int:
    """Return the exit code as a shell counts it: 128+n after signal n."""
    return 128 - returncode if returncode < 0 else returncode


def signal_of(exit_code: int) -> int | None:
    """Return the signal that an exit code means, also if a shell reported it; None if none."""
    number = exit_code - 128
    return number if 0 < number < signal.SIGRTMIN else None


class Command:
    """A running program whose output is read line by line."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        on_pieces: OnPieces,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.last_lines: deque[str] = deque(maxlen=_EVIDENCE_LINES)
        self._on_pieces = on_pieces
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.pid = self.process.pid
        self._readers = [
            self._read(self.process.stdout, streams.STDOUT),
            self._read(self.process.stderr, streams.STDERR),
        ]

    def drain(self) -> None:
        """Wait for the output of a program that has ended, while there is some.

        A process it left behind may hold the pipe open; its lines are still read as they come.
        """
        give_up_at = time.monotonic() + _LONGEST_DRAIN_S
        for reader in self._readers:
            reader.drain(_DRAIN_S, give_up_at)

    @property
    def evidence(self) -> str:
        """The last lines of its output."""
        return "\n".join(self.last_lines)

    def _read(self, pipe: IO[bytes] | None, stream: str) -> LineReader:
        assert pipe is not None  # noqa: S101 - for the type checker: PIPE is set
        # The reader closes its descriptor itself, whenever that may be.
        fd = os.dup(pipe.fileno())
        pipe.close()
        return LineReader(fd, lambda pieces: self._take(stream, pieces))

    def _take(self, stream: str, pieces: list[Piece]) -> None:
        for piece in pieces[-_EVIDENCE_LINES:]:
            if piece.text.strip() and not is_own_line(piece.text):
                self.last_lines.append(piece.text[:_EVIDENCE_LINE_LENGTH])
        self._on_pieces(stream, pieces)


class Children:
    """The children of the runner: reaps them, reports their exits, ends them all.

    An exit by a SIGTERM that the runner did not send is reported a second later: the runner's own
    SIGTERM may be on its way, and then the program has not failed.
    """

    def __init__(self, loop: MainLoop) -> None:
        self._loop = loop
        self._watched: dict[int, tuple[Command, OnExit]] = {}
        self._ended: list[Command] = []
        # Ended commands whose output is still being read.
        self._draining = 0
        # Exits that are not reported yet.
        self._unreported: list[Callable[[], None]] = []
        self._on_gone: Callable[[], None] | None = None
        self._kill: Timer | None = None
        signal.signal(signal.SIGCHLD, lambda *_: loop.post(self.reap))

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        on_pieces: OnPieces,
        on_exit: OnExit,
        stdin: int = subprocess.DEVNULL,
    ) -> Command:
        """Start a program; `on_exit` gets its return code after its output. May raise OSError.

        `stdin`: PIPE, for a program to which the caller writes.
        """
        command = Command(argv, cwd, env, on_pieces, stdin)
        self._watched[command.pid] = (command, on_exit)
        return command

    @property
    def is_ending(self) -> bool:
        """Whether the children are being ended, or have ended: none may be started any more."""
        return self._kill is not None

    def reap(self) -> None:
        """Reap the children that have exited, watched or adopted."""
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            self._collect(info.si_pid)

    def end_all(self, grace_s: float, on_gone: Callable[[], None]) -> None:
        """Send SIGTERM to every descendant, SIGKILL after `grace_s`; then call `on_gone`."""
        self._on_gone = on_gone
        # A stopped process handles the signal only after SIGCONT.
        below = descendants(os.getpid())
        signal_all(below, signal.SIGTERM)
        signal_all(below, signal.SIGCONT)
        self._kill = self._loop.call_later(grace_s, self._kill_all)
        for report in self._unreported:
            self._loop.post(report)
        self._look()

    def _collect(self, pid: int) -> None:
        watched = self._watched.pop(pid, None)
        if watched is None:
            # A thread that started it may have been quicker.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            return
        command, on_exit = watched
        returncode = command.process.wait()
        self._ended.append(command)
        self._draining += 1
        # Not on the loop's thread: processes that the command left may go on printing.
        drain = functools.partial(self._drain, command, lambda: self._report(returncode, on_exit))
        threading.Thread(target=drain, daemon=True, name="drain").start()

    def _drain(self, command: Command, report: Callable[[], None]) -> None:
        """Have `report` called once a command's output is read; on a thread of its own."""

        def drained() -> None:
            self._draining -= 1
            report()

        command.drain()
        self._loop.post(drained)

    def _report(self, returncode: int, on_exit: OnExit) -> None:
        if self.is_ending or signal_of(exit_code_of(returncode)) != signal.SIGTERM:
            on_exit(returncode)
        else:
            self._report_later(lambda: on_exit(returncode))

    def _report_later(self, on_exit: Callable[[], None]) -> None:
        """Call `on_exit` once: after a second, or when `end_all` is called before that."""

        def report() -> None:
            if report in self._unreported:
                self._unreported.remove(report)
                on_exit()

        self._unreported.append(report)
        self._loop.call_later(_SIGTERM_WAITS_S, report)

    def _look(self, pause_s: float = _FIRST_LOOK_S) -> None:
        if self._on_gone is None:
            return
        # A process whose first thread has ended looks ended before it can be reaped.
        is_over = not self._watched and not self._draining and not self._unreported
        if is_over and not descendants(os.getpid()):
            self._gone()
            return
        self._loop.call_later(pause_s, lambda: self._look(min(pause_s * 1.5, _LAST_LOOK_S)))

    def _kill_all(self, kills_left: int = _KILLS) -> None:
        signal_all(descendants(os.getpid()), signal.SIGSTOP)
        signal_all(descendants(os.getpid()), signal.SIGKILL)
        if kills_left == 0:
            self._gone()  # what stays hangs in the kernel and is beyond signals
            return
        self._kill = self._loop.call_later(_LAST_LOOK_S, lambda: self._kill_all(kills_left - 1))

    def _gone(self) -> None:
        on_gone, self._on_gone = self._on_gone, None
        if self._kill is not None:
            self._kill.cancel()
        self.reap()
        # Processes that outlived the command may have written after that.
        for command in self._ended:
            command.drain()
        if on_gone is not None:
            on_gone()
