"""Parse Monarch's reports of lost processes, and derive the verdict."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.programs import environment
from monarch_client.runner.vocabulary import verdicts
from monarch_client.runner.vocabulary.node_state import NodeState
from monarch_client.runner.vocabulary.verdicts import Where

if TYPE_CHECKING:
    from typing import Mapping

    from monarch_client.runner.attempt.driver_report import DriverReport
    from monarch_client.runner.base.config import AttemptConfig
    from monarch_client.runner.vocabulary.verdicts import Verdict

_PROC_SILENCE = "HYPERACTOR_MESH_GET_ACTOR_STATE_MAX_IDLE"
_HOST_SILENCE = "HYPERACTOR_MESH_GET_PROC_STATE_MAX_IDLE"
# Monarch's text for a process that is silent, and the setting that limits the silence.
_WORDS_OF_SILENCE = {
    "timeout waiting for message from proc mesh agent": _PROC_SILENCE,
    "timed out reaching controller": _PROC_SILENCE,
    "no status received from process": _HOST_SILENCE,
}
# Monarch's text for a process that has ended, unlike an actor that failed.
_EXITED = re.compile(r"exited with non-zero code (\d+)")
_KILLED = re.compile(r"Killed\(sig=(\d+)\)|killed by signal (\d+)")
# Its position in its mesh: `{'hosts': 1/2, 'procs': 0/1}`.
_HOST_OF = re.compile(r"'hosts': (\d+)/(\d+)")


class Loss(NamedTuple):
    """A process that Monarch has lost: by its end (a shell's exit code), or by its silence.

    `setting` limits the silence; "" if the process has ended. `text` names the process.
    """

    text: str
    ended_as: int = 0
    setting: str = ""


def verdict_of_fault(
    config: AttemptConfig, report: DriverReport, exit_code: int, states: Mapping[int, NodeState]
) -> Verdict:
    """Return the verdict on a driver that ended for a fault which Monarch reported.

    The death of a process whose host lives is the program's fault: another host would not help.
    """
    loss = _loss_in(f"{report.error}\n{report.trace}")
    if loss is None:
        return verdicts.monarch_fault(report.error, exit_code, report.trace)
    if loss.setting:
        where = _where(config, config.rank_at(loss.text))
        limit = environment.monarch_setting(config, loss.setting)
        verdict = verdicts.proc_silent(where, limit, loss.setting, exit_code, report.trace)
        return verdict._replace(crash=_silence_of(where, loss))
    rank = _rank_of(config, loss, states)
    suspects = states.values() if rank is None else [states.get(rank, NodeState())]
    if loss.ended_as == 128 + signal.SIGKILL and any(state.oom_kills for state in suspects):
        what = "A process of the meshes"
        return verdicts.out_of_memory(_where(config, rank), what, exit_code, report.trace)
    return verdicts.proc_died(_where(config, rank), loss.ended_as, exit_code, report.trace)


def _where(config: AttemptConfig, rank: int | None) -> Where | None:
    return None if rank is None else Where(rank, config.address_of(rank))


def _silence_of(where: Where | None, loss: Loss) -> str:
    """Return an id of a silence: its rank, else its position in the mesh, else ""."""
    point = _HOST_OF.search(loss.text)
    position = f"rank {where.rank}" if where else point and point.group()
    return f"silence of {position}: {loss.setting}" if position else ""


def _loss_in(text: str) -> Loss | None:
    """Return the first loss in a text; the line before it names the process."""
    before = ""
    for line in text.splitlines():
        named = f"{before}\n{line}"
        for words, setting in _WORDS_OF_SILENCE.items():
            if words in line:
                return Loss(named, setting=setting)
        if killed := _KILLED.search(line):
            return Loss(named, 128 + int(killed.group(1) or killed.group(2)))
        if exited := _EXITED.search(line):
            return Loss(named, int(exited.group(1)))
        before = line
    return None


def _rank_of(config: AttemptConfig, loss: Loss, states: Mapping[int, NodeState]) -> int | None:
    """Return the rank on which a process ended; None if that is not certain.

    Monarch names the host by its position in a mesh, which may be a slice: prefer the ranks
    whose nodes report gone processes.
    """
    gone = {rank for rank, state in states.items() if state.procs_gone}
    named: set[int] = set()
    if point := _HOST_OF.search(loss.text):
        position, size = map(int, point.groups())
        meshes = config.ranks_of_meshes().values()
        named = {ranks[position] for ranks in meshes if len(ranks) == size and position < size}
    certain = (named & gone) or gone or named
    return certain.pop() if len(certain) == 1 else None
