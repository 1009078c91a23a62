"""What Monarch reports of processes that it has lost, and the verdict that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner import environment, verdicts
from monarch_client.runner.verdicts import Where

if TYPE_CHECKING:
    from monarch_client.runner.config import AttemptConfig
    from monarch_client.runner.driver_report import DriverReport
    from monarch_client.runner.verdicts import Verdict

_PROC_SILENCE = "HYPERACTOR_MESH_GET_ACTOR_STATE_MAX_IDLE"
_HOST_SILENCE = "HYPERACTOR_MESH_GET_PROC_STATE_MAX_IDLE"
# Monarch's words for silence, and the setting that limits it.
_WORDS_OF_SILENCE = {
    "timeout waiting for message from proc mesh agent": _PROC_SILENCE,
    "timed out reaching controller": _PROC_SILENCE,
    "no status received from process": _HOST_SILENCE,
}
# Monarch's words for a process that is gone, as against an actor that failed.
_WORDS_OF_LOSS = ("exited with non-zero code", "Killed(sig=", "killed by signal")


class Loss(NamedTuple):
    """A line of Monarch's on a process. `setting` limits its silence; "" where it has ended."""

    line: str
    setting: str = ""


def verdict_of_fault(config: AttemptConfig, report: DriverReport, exit_code: int) -> Verdict:
    """Return the verdict on a driver that ended for a fault which Monarch reported."""
    text = f"{report.error}\n{report.trace}"
    loss = _loss_in(text)
    if loss is None:
        return verdicts.monarch_fault(report.error, exit_code, report.trace)
    if not loss.setting:
        return verdicts.proc_lost(loss.line, exit_code, report.trace)
    rank = config.rank_at(text)
    where = None if rank is None else Where(rank, config.address_of(rank))
    limit = environment.monarch_setting(config, loss.setting)
    return verdicts.proc_silent(where, limit, loss.setting, exit_code, report.trace)


def _loss_in(text: str) -> Loss | None:
    for line in text.splitlines():
        for words, setting in _WORDS_OF_SILENCE.items():
            if words in line:
                return Loss(line.strip(), setting)
        if any(words in line for words in _WORDS_OF_LOSS):
            return Loss(line.strip())
    return None
