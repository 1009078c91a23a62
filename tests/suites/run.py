"""Run suites one after the other and sum up: for `make test-all`, and for `.ci/run` after setup.

    python -m tests.suites.run all    every suite whole
    python -m tests.suites.run ci     `make test`, and a slice of each expensive suite

Each suite is a make target. Its output goes to `.results/<target>.log` and its outcomes, as JUnit
XML, to `.results/junit/<target>.xml`, or to `.results/junit-ci` where slices ran, which `make
features` does not read. Tests that fail are run once more, one after the other, into
`<target>-again.xml`; the suite counts as failed when one of them fails again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.suites.selection import (
    ROOT,
    SLICES,
    base_commit,
    change_since,
    commit_count,
    following,
    is_shallow,
)

RESULTS = ROOT / ".results"
LAST_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
EXPENSIVE = ("slow", "faults", "log-faults", "sky-faults", "browsers", "cluster-test")
CHECKS = ("lint", "types")
# CI ends a run after 90 minutes; what is late by then is reported instead of cut off.
CI_LIMIT_S = 5000
ALL_LIMIT_S = 4 * 3600
LEAST_S = 300
CHECK_LIMIT_S = 900
AGAIN = "--last-failed --last-failed-no-failures none -n 0"
CLOSING_LINE = re.compile(r"^=+ .*(?:passed|failed|error|deselected).* in .*=+$", re.MULTILINE)
FAILED_LINE = re.compile(r"^=+ .*(?:failed|error).* in .*=+$", re.MULTILINE)
BROKEN_OFF = re.compile(r"maximum crashed workers|Interrupted|INTERNALERROR")
SHOWN_LINES = 60


@dataclass(frozen=True)
class Selection:
    """The part of the expensive suites that this run takes: pytest's options and a sentence."""

    options: str
    sentence: str


EVERYTHING = Selection("", "Every suite runs whole.")


class Run:
    """One run of several suites until a deadline, with a line for each at the end."""

    def __init__(self, limit_s: float, junit: str) -> None:
        self.deadline = time.monotonic() + limit_s
        self.summary: list[str] = []
        self.has_failed = False
        self._junit = RESULTS / junit
        # Without the files of an earlier run.
        shutil.rmtree(self._junit, ignore_errors=True)
        self._junit.mkdir(parents=True)

    def suite(self, target: str, options: str = "") -> None:
        """Run the suite, and once more the tests that failed, one after the other."""
        LAST_FAILED.unlink(missing_ok=True)
        passed = self._try(target, target, options)
        if passed is False:
            # Without options: a slice of what failed would leave failed tests out.
            passed = self._try(target, f"{target}-again", AGAIN)
        self.has_failed |= not passed

    def _try(self, target: str, name: str, options: str) -> bool | None:
        """Run the suite once and return whether it passed.

        None means that it failed and that a rerun is of no use: the suite was not started, or it
        broke off before all failures were known.
        """
        left_s = self.deadline - time.monotonic()
        if left_s < LEAST_S:
            self.add(f"make {target} was not started: it is too late")
            return None
        arguments = f"{options} --junitxml={self._junit / name}.xml".strip()
        began = time.monotonic()
        log = RESULTS / f"{name}.log"
        code = make(target, log, left_s, ARGS=arguments)
        text = log.read_text(errors="replace")
        closing = CLOSING_LINE.findall(text)
        again = " (failed tests once more)" if name != target else ""
        outcome = "passed" if code == 0 else "FAILED"
        self.add(f"make {target}{again} {outcome} in {time.monotonic() - began:.0f} s", *closing)
        if code == 0:
            return True
        say(*text.splitlines()[-SHOWN_LINES:])
        # Only a run that came to its end knows all that failed.
        return False if FAILED_LINE.search(text) and not BROKEN_OFF.search(text) else None

    def add(self, line: str, *closing: str) -> None:
        """Print an outcome now, and keep it for the summary."""
        said = f"== {line}"
        self.summary.append("\n".join([said, *closing]))
        say(*closing, said)

    def end(self, sentence: str) -> int:
        """Print the summary, with the sentence as its last line; return the exit code."""
        say("", *self.summary, sentence)
        return int(self.has_failed)


def say(*lines: str) -> None:
    """Print lines at once, so that CI shows its progress."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def make(target: str, log: Path, limit_s: float, **variables: str) -> int:
    """Run a make target with a time limit, its output into the log; return the exit code."""
    # ARGS already holds the slice options; make would pass on a SLICE of its own command line.
    words = [f"{name}={value}" for name, value in {"SLICE": "", **variables}.items()]
    argv = ["timeout", "--kill-after=60", f"{limit_s:.0f}", "make", target, *words]
    with log.open("wb") as output, _started(argv, output) as process:
        return process.wait()


@contextmanager
def _started(argv: list[str], output: IO[bytes] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in the block; end it, and what it started, if the block is interrupted."""
    process = subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
    )
    try:
        yield process
    except BaseException:
        # `timeout` passes the signal on to the process group that it has made.
        process.terminate()
        process.wait()
        raise


def ci() -> int:
    """Run the checks that gate a change: lint and types beside the tests."""
    chosen = choose_slices(os.environ.get("SLICE", ""))
    say(chosen.sentence)
    run = Run(CI_LIMIT_S - _seconds_of_set_up(), "junit" if chosen is EVERYTHING else "junit-ci")
    with _started([sys.executable, "-m", "tests.suites.run", "checks"]) as checks:
        run.suite("test")
        for target in EXPENSIVE:
            run.suite(target, chosen.options)
        code = checks.wait()
    run.has_failed |= code != 0
    run.summary.append(f"== make lint types {'FAILED' if code else 'passed'}")
    return run.end(chosen.sentence)


def _seconds_of_set_up() -> float:
    """Return how long `.ci/run` has taken so far; CI's limit counts from its start."""
    return time.time() - float(os.environ.get("CI_STARTED_AT") or time.time())


def checks() -> int:
    """Run lint and types, at a lower priority than the tests beside them."""
    os.nice(5)
    has_failed = False
    for target in CHECKS:
        log = RESULTS / f"{target}.log"
        began = time.monotonic()
        code = make(target, log, CHECK_LIMIT_S)
        has_failed |= code != 0
        shown = log.read_text(errors="replace").splitlines()[-SHOWN_LINES:] if code else []
        outcome = "FAILED" if code else "passed"
        say(*shown, f"== make {target} {outcome} in {time.monotonic() - began:.0f} s")
    return int(has_failed)


def test_all() -> int:
    """Run every suite whole, and search with generated examples that differ in each run."""
    os.environ["SEARCH"] = "1"
    run = Run(ALL_LIMIT_S, "junit")
    for target in ("test", *EXPENSIVE, "tensors"):
        run.suite(target)
    return run.end(EVERYTHING.sentence)


def choose_slices(choice: str) -> Selection:
    """Return the parts of the expensive suites that this run takes.

    Args:
        choice: `all`, the number of a slice, or "" for the slice that HEAD's commit count gives.
    """
    if choice == "all":
        return EVERYTHING
    if not choice and is_shallow():
        sys.exit("This clone lacks the history that names the slice: git fetch --unshallow")
    slices = frozenset({int(choice) % SLICES if choice else commit_count() % SLICES})
    base = base_commit()
    change = change_since(base) if base else None
    if change is None or change.is_large:
        slices = following(slices)
    numbers = ",".join(str(number) for number in sorted(slices))
    sentence = f"Slice {numbers} of the {SLICES} slices (0 to {SLICES - 1}) of each expensive suite"
    if change is None:
        return Selection(f"--slice={numbers}", f"{sentence}; git has no history of the change.")
    extent = f"{len(change.packages)} of {change.package_count} packages since {base[:9]}"
    if change.is_large:
        return Selection(
            f"--slice={numbers}", f"{sentence}; two, because the change touches {extent}."
        )
    options = f"--slice={numbers} --since={base}"
    return Selection(options, f"{sentence}, and the tests of what has changed: {extent}.")


if __name__ == "__main__":
    sys.exit({"all": test_all, "ci": ci, "checks": checks}[sys.argv[1]]())
