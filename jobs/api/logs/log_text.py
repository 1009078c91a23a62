"""Lines of log as plain text, the pieces of a long line put together again."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.readers.job_log import JobLogLine


class LogText:
    """A writer of pages of lines in sequence. `ranks`, `times`: what precedes each line."""

    def __init__(self, *, ranks: bool, times: bool) -> None:
        self._ranks = ranks
        self._times = times
        self._unfinished: JobLogLine | None = None

    def of(self, lines: Iterable[JobLogLine]) -> str:
        """Return the text of further lines."""
        return "".join(self._pieces(lines))

    def end(self) -> str:
        """Return what is left to write after the last line."""
        return "\n" if self._unfinished else ""

    def _pieces(self, lines: Iterable[JobLogLine]) -> Iterable[str]:
        for line in lines:
            if not self._goes_on_with(line):
                # Another rank printed in between: what it cut off is on a line of its own.
                yield self.end()
                yield self._opening(line)
            yield line.text if line.more else f"{line.text}\n"
            self._unfinished = line if line.more else None

    def _goes_on_with(self, line: JobLogLine) -> bool:
        begun = self._unfinished
        return begun is not None and (begun.attempt, begun.rank, begun.stream) == (
            line.attempt,
            line.rank,
            line.stream,
        )

    def _opening(self, line: JobLogLine) -> str:
        time = (
            f"{line.at:%Y-%m-%dT%H:%M:%S}.{line.at.microsecond // 1000:03d}Z "
            if self._times
            else ""
        )
        return f"{time}[{line.rank}] " if self._ranks else time
