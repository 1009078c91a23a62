"""Hosts that take long not to answer, beside others that are well."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from monarch_client.runner.mesh import walk as mesh_walk
from monarch_client.runner.mesh.admin import AT_ONCE, Answer, MeshAdmin
from monarch_client.runner.mesh.walk import Walk
from tests.unit.runner.mesh.test_walk import Clock


class SlowAdmin(MeshAdmin):
    """Hosts that take three seconds to be late, in a time of their own; two at once."""

    def __init__(self, clock: Clock, late: list[str], procs: dict[str, str]) -> None:
        self.requested: list[str] = []
        self._clock, self.late, self._procs = clock, late, procs

    def ask_root(self) -> Answer:
        return self._well(list(self._procs))

    def ask_all(self, references: Sequence[str], until: float) -> list[Answer | None]:
        answers: list[Answer | None] = [None] * len(references)
        free_at = [self._clock.now] * AT_ONCE
        for place, reference in enumerate(references):
            worker = free_at.index(min(free_at))
            if free_at[worker] >= until:
                break
            self.requested.append(reference)
            is_late = reference in self.late
            free_at[worker] += 3.0 if is_late else 0.01
            well = self._well([each] if (each := self._procs.get(reference)) else [])
            answers[place] = Answer(504, {}, "gateway_timeout", "late") if is_late else well
        self._clock.now = max(free_at)
        return answers

    def _well(self, children: list[str]) -> Answer:
        return Answer(200, {"children": children}, "", "")


def test_hosts_that_take_all_their_time_keep_no_proc_of_the_others_from_being_queried(
    monkeypatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(mesh_walk, "time", SimpleNamespace(monotonic=clock))
    procs = {f"host<h{n}>@{n}": f"p<{n}>@z" for n in range(24)}
    admin = SlowAdmin(clock, [], procs)
    walk = Walk(lambda _address: 0, lambda *_proc: True, clock)
    walk.look([admin])
    admin.late = list(procs)[:16]
    admin.requested.clear()
    found = [walk.look([admin]) for _ in range(12)]
    states = {host["id"]: host["state"] for host in found[-1]["hosts"]}
    assert states == {str(n): "unreachable" if n < 16 else "up" for n in range(24)}
    assert [admin.requested.count(f"p<{n}>@z") for n in range(16, 24)] == [12] * 8
