"""Read the meshes from their mesh admins as a tree: root, hosts, procs, actors.

docs/reference/frames.md describes the tree. A look is bounded in requests and in time.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from monarch_client.runner.mesh.misses import HOST_THRESHOLD, PROC_THRESHOLD, ROOT_THRESHOLD, Misses
from monarch_client.runner.vocabulary import mesh_states
from monarch_client.runner.vocabulary.limits import MAX_MESH_COUNT, MAX_MESH_NAME_CHARS

if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from monarch_client.runner.mesh.admin import Answer, MeshAdmin

    Node = dict[str, Any]

# In one look.
MOST_QUESTIONS = 1500
MOST_S = 12.0
# Of the text of one failure.
_MOST_WHY = 2000
_ROOT = "root"
# The fraction of requests and time that a level may use: hosts that do not answer, three seconds
# each, must not use up the time for the procs of the others.
_PART_OF_HOSTS, _PART_OF_PROCS = 0.5, 0.75
_LOOKS_REMEMBERED = 500
# `probe<x>` in `probe<x>.procs-0<y>@...`
_ACTOR_NAME = re.compile(r"[^.<@]*(?:<[^>]*>)?")
_NO_TURN = "Its state was not requested yet: there are too many nodes."
_NOT_FOUND = "not_found"
_SILENT = " Its process has not exited: it may be stopped or too busy to answer."
# The states that Monarch reports under the same names; all others mean that the actor runs.
_SAME_STATES = frozenset({mesh_states.FAILED, mesh_states.STOPPED, mesh_states.UNKNOWN})


class Walk:
    """A repeated look at the meshes of one driver."""

    def __init__(
        self,
        rank_of: Callable[[str], int | None],
        has_proc_ended: Callable[[int | None, str], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rank_of = rank_of
        self._has_proc_ended = has_proc_ended
        self.misses = Misses(now)
        # The last known content of each host.
        self._known: dict[str, Node] = {}
        self._procs_of: dict[str, list[str]] = {}
        self._have_answered: set[str] = set()
        # By level, the look that last requested each node: the oldest goes first.
        self._queried_in: dict[tuple[MeshAdmin, str], dict[str, int]] = {}
        self._looks = self._questions = 0
        self._until = 0.0

    def look(self, admins: Iterable[MeshAdmin]) -> Node | None:
        """Return the current tree; `answers` is false if an admin does not answer.

        None: one did not answer, but may be about to end.
        """
        self._questions, self._until = MOST_QUESTIONS, time.monotonic() + MOST_S
        self._looks += 1
        self._have_answered.clear()
        hosts: dict[str, Node] = {}
        for admin in admins:
            root = admin.ask_root()
            if not root.is_ok:
                is_certain = self.misses.note(_ROOT, ROOT_THRESHOLD)
                why = f"GET /v1/root of the mesh admin: {root.message}"
                silent = {"answers": False, "why": why, "left_out": 0, "hosts": []}
                return silent if is_certain and not self.misses.has_reported_loss else None
            references = [each for each in root.references("children") if each not in hosts]
            hosts.update(self._hosts(admin, references))
        self._procs_of = {each: self._procs_of.get(each, []) for each in hosts}
        self.misses.keep({*hosts, *(each for procs in self._procs_of.values() for each in procs)})
        for reference, host in hosts.items():
            if reference in self._known:
                self._fill(host, self._known[reference])
        self._known = hosts
        # Leave out the admin's own process, in which nothing of the user runs.
        shown = [host for host in hosts.values() if host["rank"] is not None or host["procs"]]
        ordered = sorted(shown, key=_sort_key)
        return {"answers": True, "why": "", "left_out": 0, "hosts": ordered}

    def _ask(
        self, admin: MeshAdmin, level: str, references: list[str], part: float = 1.0
    ) -> list[Answer | None]:
        """Request nodes of one level; None for those that a later look has to request.

        `part`: the fraction of the remaining requests and time that may be used.
        """
        oldest = self._looks - _LOOKS_REMEMBERED
        before = self._queried_in.get((admin, level), {})
        queried_in = {each: look for each, look in before.items() if look >= oldest}
        self._queried_in[admin, level] = queried_in
        # Nodes that may be lost go first.
        suspect = self.misses.is_suspect
        waiting = sorted(references, key=lambda each: (not suspect(each), queried_in.get(each, 0)))
        now = time.monotonic()
        until = now + (self._until - now) * part
        queried = waiting[: int(self._questions * part)]
        answers = dict(zip(queried, admin.ask_all(queried, until)))
        if self.misses.has_reported_loss:
            # The driver is about to end: there may be no second look.
            again = [
                each for each in queried if (one := answers[each]) is not None and not one.is_ok
            ]
            found = zip(again, admin.ask_all(again, until))
            answers.update({each: answer for each, answer in found if answer is not None})
        for reference, answer in answers.items():
            if answer is not None:
                self._questions -= 1
                queried_in[reference] = self._looks
                if answer.is_ok:
                    self.misses.forget(reference)
        return [answers.get(each) for each in references]

    def _hosts(self, admin: MeshAdmin, references: list[str]) -> dict[str, Node]:
        answers = self._ask(admin, "hosts", references, _PART_OF_HOSTS)
        hosts: dict[str, Node] = {}
        procs: list[tuple[Node, str]] = []
        for reference, answer in zip(references, answers):
            host = hosts[reference] = self._host(reference, answer)
            if answer is not None and answer.is_ok:
                self._have_answered.add(host["id"])
                children = answer.references("children")
                self._procs_of[reference] = [e for e in children if not _is_monarchs_own(e)]
            known = self._procs_of.get(reference, [])
            if host["state"] == mesh_states.UNREACHABLE:
                self.misses.forget_suspects(known)
            elif answer is None or answer.is_ok:
                procs += [(host, each) for each in known]
        self._add_procs(admin, procs)
        return hosts

    def _host(self, reference: str, answer: Answer | None) -> Node:
        address = str(answer.of("Host").get("addr", "")) if answer is not None else ""
        rank = self._rank_of(address or reference)
        host: Node = {
            "id": _address_in(reference),
            "rank": rank,
            "why": "",
            "left_out": 0,
            "procs": [],
        }
        if answer is None:
            before = self._known.get(reference)
            if before is not None:
                return {**before, "procs": []}
            return {**host, "state": mesh_states.UNKNOWN, "why": _NO_TURN}
        if answer.is_ok:
            return {**host, "state": mesh_states.UP}
        if self.misses.note(reference, HOST_THRESHOLD):
            return {
                **host,
                "state": mesh_states.UNREACHABLE,
                "why": self.misses.evidence(reference, answer.message),
            }
        return {**host, "state": mesh_states.UP}

    def _add_procs(self, admin: MeshAdmin, procs: list[tuple[Node, str]]) -> None:
        answers = self._ask(admin, "procs", [each for _, each in procs], _PART_OF_PROCS)
        actors: list[tuple[Node, str]] = []
        for (host, reference), answer in zip(procs, answers):
            proc = self._proc(host["rank"], reference, answer)
            host["procs"].append(proc)
            if answer is not None and answer.is_ok:
                self._have_answered.add(proc["id"])
                actors += [(proc, each) for each in _actors_of(answer)]
        self._add_actors(admin, actors)

    def _proc(self, rank: int | None, reference: str, answer: Answer | None) -> Node:
        proc = {"id": _name_of(reference), "why": "", "left_out": 0, "actors": []}
        if answer is None:
            return {**proc, "state": mesh_states.UNKNOWN, "why": _NO_TURN}
        if answer.is_ok:
            found = answer.of("Proc")
            failed = _count(found.get("failed_actor_count"))
            if not (found.get("is_poisoned") or failed):
                return {**proc, "state": mesh_states.ALIVE}
            why = f"{failed or 'Some'} of its actors failed: it takes no new ones."
            return {**proc, "state": mesh_states.POISONED, "why": why}
        if not self.misses.note(reference, PROC_THRESHOLD):
            return {**proc, "state": mesh_states.ALIVE}
        why = self.misses.evidence(reference, answer.message)
        state = mesh_states.UNKNOWN
        if answer.code == _NOT_FOUND:
            # The admin gives the same answer for a process that is stopped or busy.
            has_ended = self._has_proc_ended(rank, str(proc["id"]))
            state = mesh_states.DEAD if has_ended else mesh_states.SILENT
        return {
            **proc,
            "state": state,
            "why": why + _SILENT if state == mesh_states.SILENT else why,
        }

    def _add_actors(self, admin: MeshAdmin, actors: list[tuple[Node, str]]) -> None:
        answers = self._ask(admin, "actors", [reference for _, reference in actors])
        for (proc, reference), answer in zip(actors, answers):
            if answer is None:
                proc["left_out"] += 1
            elif answer.is_ok:
                proc["actors"].append(_actor(reference, answer.of("Actor")))

    def _fill(self, host: Node, before: Node) -> None:
        """Complete nodes that did not answer with their earlier procs and actors."""
        if host["id"] not in self._have_answered:
            host["rank"] = before["rank"]
            host["procs"] = host["procs"] or before["procs"]
        known = {proc["id"]: proc for proc in before["procs"]}
        host["procs"] = [self._filled(host, proc, known.get(proc["id"])) for proc in host["procs"]]

    def _filled(self, host: Node, proc: Node, before: Node | None) -> Node:
        if proc["why"] == _NO_TURN and before is not None:
            return before
        if proc["id"] not in self._have_answered and before is not None:
            proc = {**proc, "actors": before["actors"], "left_out": before["left_out"]}
        if host["state"] != mesh_states.UP:
            proc = {**proc, "state": mesh_states.UNKNOWN, "why": "Its host does not answer."}
        if proc["state"] in {mesh_states.DEAD, mesh_states.SILENT, mesh_states.UNKNOWN}:
            # Their state is unknown.
            actors = [{**actor, "state": mesh_states.UNKNOWN} for actor in proc["actors"]]
            proc = {**proc, "actors": actors}
        return proc


def _is_monarchs_own(reference: str) -> bool:
    """Whether a proc is one of Monarch's own, which every host has."""
    return reference.partition("@")[0].partition("<")[0] in {"service", "local"}


def _actors_of(answer: Answer) -> list[str]:
    """Return the users' own actors of a proc, ended ones included, failed ones first."""
    ours = set(answer.references("properties", "Proc", "system_children"))
    ended = answer.references("properties", "Proc", "stopped_children")
    there = [each for each in answer.references("children") if each not in ended]
    return [each for each in dict.fromkeys([*ended, *there]) if each not in ours]


def _actor(reference: str, found: Node) -> Node:
    status = str(found.get("actor_status", ""))
    word, _, rest = status.partition(":")
    reported = word.strip().lower()
    state = reported if reported in _SAME_STATES else mesh_states.RUNNING
    info = found.get("failure_info")
    failure = str(info.get("error_message", "")) if isinstance(info, dict) else ""
    return {
        "id": (_ACTOR_NAME.findall(reference)[0] or reference)[:MAX_MESH_NAME_CHARS],
        "kind": str(found.get("actor_type", "")).rpartition("::")[2][:MAX_MESH_NAME_CHARS],
        "state": state,
        "doing": word.strip()[:MAX_MESH_NAME_CHARS],
        "messages": _count(found.get("messages_processed")),
        "why": _failure_text(failure or rest) if state == mesh_states.FAILED else "",
    }


def _count(value: object) -> int:
    return min(value, MAX_MESH_COUNT) if type(value) is int and value > 0 else 0


def _failure_text(text: str) -> str:
    # Keep the end of a trace, without Monarch's own stack, which may follow it.
    return text.partition("\n\nStack backtrace:")[0].strip()[-_MOST_WHY:]


def _address_in(reference: str) -> str:
    """Return 10.0.0.1:22222 of `host:host_agent.service<x>@tls://10.0.0.1:22222`."""
    where = reference.rpartition("@")[2]
    return (where.rpartition("://")[2] or where)[:MAX_MESH_NAME_CHARS]


def _name_of(reference: str) -> str:
    """Return the name of a proc without its address."""
    return reference.rpartition("@")[0][:MAX_MESH_NAME_CHARS] or reference[:MAX_MESH_NAME_CHARS]


def _sort_key(host: Node) -> tuple[bool, int, str]:
    rank = host["rank"]
    return (rank is None, rank or 0, host["id"])
