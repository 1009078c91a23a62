"""Verdicts on an attempt: the reason, what happened on which node, what to do, the evidence."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.vocabulary import reasons

if TYPE_CHECKING:
    from typing import Any

EVIDENCE_LENGTH = 4000
# The exception in the message of `command_failed`, without its place.
RAISED = r" raised ([A-Z_a-z][\w.]*(?:: .*?)?)(?: at \S+:\d+)?\.(?: Attempt \d+ ended|$)"
PORT_TAKEN = "another program already listens there"


class Where(NamedTuple):
    """A node, as messages name it."""

    rank: int
    address: str

    def __str__(self) -> str:
        return f"rank {self.rank} ({self.address})"


class Verdict(NamedTuple):
    """The content of the end frame.

    `crash` identifies a loss on a live host, by its way and place; "" where the host may be gone.
    """

    reason: str
    message: str
    hint: str = ""
    exit_code: int | None = None
    evidence: str = ""
    crash: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the attempt succeeded."""
        return self.reason == reasons.COMPLETED

    def to_frame(self) -> dict[str, Any]:
        """Return the fields of the end frame, bounded."""
        return dict(self._asdict(), evidence=self.evidence[-EVIDENCE_LENGTH:])


def completed() -> Verdict:
    """Return the verdict on an attempt whose commands returned 0."""
    return Verdict(reasons.COMPLETED, "The program finished.", exit_code=0)


def hosts_shut_down() -> Verdict:
    """Return the verdict on workers without a driver, after a program has shut all of them down."""
    return Verdict(reasons.COMPLETED, "A program shut down all hosts.", exit_code=0)


def stopped(where: Where, by: str) -> Verdict:
    """Return the verdict on a runner that was stopped by the portal, or a signal from outside."""
    return Verdict(
        reasons.CANCELLED_BY_USER,
        f"The runner of {where} was stopped by {by}.",
        "Run it again when you want it.",
    )


def setup_failed(where: Where, exit_code: int, evidence: str) -> Verdict:
    """Return the verdict on a `setup` that failed."""
    return Verdict(
        reasons.SETUP,
        f"setup failed on {where}: it {ended_with(exit_code)}.",
        "See the log's setup stream of this rank; correct `setup` and run again.",
        exit_code,
        evidence,
    )


def setup_too_slow(where: Where, seconds: float, evidence: str) -> Verdict:
    """Return the verdict on a `setup` that exceeded its time limit."""
    return Verdict(
        reasons.SETUP,
        f"setup on {where} did not finish within {seconds:g} s.",
        "Look at the last setup lines of this rank for what it waits for.",
        evidence=evidence,
    )


def not_laid_out(where: Where, why: str) -> Verdict:
    """Return the verdict on folders that could not be unpacked; `why` continues the sentence."""
    return Verdict(
        reasons.SETUP,
        f"{where} could not be prepared: {why}.",
        "Look at the disk and the permissions of that place, or choose another target.",
        evidence=why,
    )


def not_fetched(where: Where, why: str, evidence: str) -> Verdict:
    """Name the repository that a node could not fetch; `why` continues the sentence."""
    return Verdict(
        reasons.SETUP,
        f"{where} could not fetch the work directory: {why}.",
        "Check url and ref of workdir. A private repository needs a secret GIT_TOKEN (https) or "
        "GIT_SSH_KEY (ssh).",
        evidence=evidence,
    )


def monarch_not_installed(where: Where, version: str, why: str, evidence: str) -> Verdict:
    """Return the verdict on a failed installation of torchmonarch; `why` continues the sentence."""
    return Verdict(
        reasons.SETUP,
        f"torchmonarch {version} is missing on {where} and could not be installed: {why}.",
        f"Install it in `setup` (pip install torchmonarch=={version}) or use an image with "
        "Python 3.10 or newer that has it; see the setup lines of this rank.",
        evidence=evidence or why,
    )


def never_joined(where: Where, seconds: float) -> Verdict:
    """Return the verdict on a runner that did not connect to rank 0."""
    return Verdict(
        reasons.WORKER_NEVER_READY,
        f"The runner of {where} did not report to rank 0 within {seconds:g} s.",
        "Check that this node is up and may open connections to rank 0.",
    )


def worker_never_ready(where: Where, port: int, why: str, evidence: str) -> Verdict:
    """Return the verdict on a worker that did not listen; `why` continues the sentence."""
    return Verdict(
        reasons.WORKER_NEVER_READY,
        f"The worker of {where} never listened on port {port}: {why}.",
        _worker_hint(evidence),
        evidence=evidence or why,
    )


def _worker_hint(evidence: str) -> str:
    if "No module named 'monarch'" in evidence or "No module named 'monarch." in evidence:
        return "Install torchmonarch in this Python: `setup: pip install torchmonarch`."
    if "ModuleNotFoundError" in evidence or "ImportError" in evidence:
        return "The worker's Python lacks something Monarch needs; install it in `setup`."
    if PORT_TAKEN in evidence or "ddress already in use" in evidence:
        return "Another program has the port; choose another one with `portal.port`."
    return "See the last lines of this rank's log."


def worker_lost(where: Where, what: str, evidence: str, ended_as: int | None = None) -> Verdict:
    """Report the loss of a ready worker; `what` continues the sentence.

    `ended_as` is the exit code of its process, if its runner reported one.
    """
    # SIGTERM comes from outside, as when a machine is taken away.
    is_crash = ended_as is not None and ended_as - 128 != signal.SIGTERM
    return Verdict(
        reasons.WORKER_LOST,
        f"The worker of {where} was lost: {what}.",
        "If the node is well, see the last lines of this rank; else run again.",
        evidence="\n".join(filter(None, [what, evidence])),
        crash=f"worker of rank {where.rank}: exit code {ended_as}" if is_crash else "",
    )


def proc_died(where: Where | None, ended_as: int, exit_code: int, evidence: str) -> Verdict:
    """Blame the program for a mesh process that ended (exit code `ended_as`) on a live host."""
    of = f" of {where}" if where else ""
    what = f"A process of the meshes{of} {ended_with(ended_as)}"
    number = ended_as - 128
    if number == signal.SIGTERM:
        hint = "Something outside ended it, as when a machine is taken away."
        return Verdict(reasons.WORKER_LOST, f"{what}.", hint, exit_code, evidence)
    if number == signal.SIGKILL:
        hint = "See the memory of its node: running out of it is the usual cause."
    elif _signal_name(ended_as):
        hint = (
            "A crash in native code: PYTHONFAULTHANDLER=1 in `envs` shows where, in the log of its "
            "rank."
        )
    else:
        hint = "The program ended it; see the last lines of its rank's log."
    return Verdict(reasons.USER_CODE, f"{what}.", hint, exit_code, evidence)


def proc_silent(
    where: Where | None, limit: str, setting: str, exit_code: int, evidence: str
) -> Verdict:
    """Report that Monarch gave up on a process or host that was silent for `limit`."""
    of = f" of {where}" if where else ""
    return Verdict(
        reasons.WORKER_LOST,
        f"A process of the meshes{of} was silent for {limit}, so Monarch gave it up ({setting}).",
        "It was stopped, or too busy to answer, or its network was cut. If it only needs longer, "
        f'set {setting} in `envs`, such as "300s".',
        exit_code,
        evidence,
    )


def runner_lost(where: Where) -> Verdict:
    """Return the verdict on a runner that was killed."""
    return Verdict(
        reasons.WORKER_LOST,
        f"The runner of {where} was killed; everything it had started was ended.",
        "Something outside killed it; look for memory pressure on this node, or run again.",
    )


def out_of_memory(where: Where | None, what: str, exit_code: int, evidence: str) -> Verdict:
    """Return the verdict on a process that the kernel killed for lack of memory."""
    of = f" of {where}" if where else ""
    return Verdict(
        reasons.OOM,
        f"{what}{of} was killed because memory ran out.",
        "Request more memory, or use less: smaller batches, fewer procs on a host.",
        exit_code,
        evidence,
    )


def python_mismatch(driver: str, workers: str, evidence: str = "") -> Verdict:
    """Return the verdict on different Pythons of driver and workers, which crash Monarch."""
    return Verdict(
        reasons.PYTHON_MISMATCH,
        f"The driver runs Python {driver}, but the workers run {workers}.",
        "Use the same minor version of Python for `run` and for the workers.",
        evidence=evidence,
    )


def workers_differ(versions: dict[int, str]) -> Verdict:
    """Return the verdict on workers with different Pythons."""
    listed = ", ".join(f"rank {rank}: {versions[rank]}" for rank in sorted(versions))
    return Verdict(
        reasons.PYTHON_MISMATCH,
        f"The workers run different versions of Python ({listed}).",
        "Use one image, or install the same minor version on every node.",
        evidence=listed,
    )


def command_failed(where: Where, exit_code: int, evidence: str, error: str = "") -> Verdict:
    """Return the verdict on a failed program; `error` is its own exception, if known."""
    if error:
        message = "The program on {} raised {}.".format(where, error.rstrip(".:"))
        hint = "See the traceback in the log."
    elif name := _signal_name(exit_code):
        message = f"The program on {where} returned exit code {exit_code}, as after {name}."
        hint = _hint_on_signal(exit_code)
    else:
        message = f"The program on {where} {ended_with(exit_code)}."
        hint = "See the last lines of this rank's log."
    return Verdict(reasons.USER_CODE, message, hint, exit_code, evidence)


def command_killed(where: Where, exit_code: int, evidence: str) -> Verdict:
    """Return the verdict on a program that a signal ended; `exit_code` is 128 plus its number."""
    message = f"The program on {where} {ended_with(exit_code)}."
    return Verdict(reasons.USER_CODE, message, _hint_on_signal(exit_code), exit_code, evidence)


def _hint_on_signal(exit_code: int) -> str:
    if exit_code - 128 == signal.SIGKILL:
        return "See the memory of its node: running out of it is the usual cause."
    return "It did not raise: a crash in native code, or a signal from outside."


def monarch_fault(error: str, exit_code: int, evidence: str) -> Verdict:
    """Return the verdict on a fault of Monarch that no lost worker explains."""
    return Verdict(
        reasons.MONARCH,
        "Monarch reported a fault: {}.".format(error.rstrip(".:")),
        "An actor or a proc failed; see its lines in the log of its rank.",
        exit_code,
        evidence,
    )


def _signal_name(exit_code: int) -> str:
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return ""


def ended_with(exit_code: int) -> str:
    """Return how a program ended, as a sentence continues after "the program"."""
    name = _signal_name(exit_code)
    return f"was ended by {name}" if name else f"returned exit code {exit_code}"
