"""Usage by person, with the arithmetic of `jobs.scheduling.shares`: no rows, only numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from bench.schedule.simulate import Run
from jobs.scheduling.shares import Account, decayed_use, promised_use

WEEK_S = 7 * 24 * 3600.0
# A project, and a person in it.
Who = tuple[int, int]


class Ledger:
    """Accounts of people in projects, as `jobs.queueing.usage` keeps them in rows."""

    def __init__(self, half_life_s: float = WEEK_S) -> None:
        self._half_life_s = half_life_s
        self._accounts: dict[Who, Account] = {}

    def charge(self, run: Run, now_s: float) -> None:
        """Add a run that has ended to its owner's account."""
        who = run.job.project, run.job.person
        before = self._accounts.get(who, Account(0.0, now_s))
        left = before.carried_to(now_s, self._half_life_s)
        self._accounts[who] = Account(left + self._ran(run, now_s), now_s)

    def used(self, running: Iterable[Run], now_s: float, *, promised: bool) -> dict[Who, float]:
        """Return node-hours by person; if `promised`, with what running jobs may still use."""
        used: dict[Who, float] = defaultdict(float)
        for who, account in self._accounts.items():
            used[who] += account.carried_to(now_s, self._half_life_s)
        for run in running:
            who = run.job.project, run.job.person
            used[who] += self._ran(run, now_s)
            if promised:
                used[who] += promised_use(run.job.nodes, run.began_s + run.job.asks_s - now_s)
        return used

    def _ran(self, run: Run, now_s: float) -> float:
        return decayed_use(
            run.job.nodes, run.began_s, now_s, now_s=now_s, half_life_s=self._half_life_s
        )
