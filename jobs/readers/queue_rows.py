"""Rows of `queue_state` with what pages show besides."""

from __future__ import annotations

from jobs.scheduling.amounts import counted, usd
from jobs.scheduling.limits import USD_PER_HOUR
from monarch_client.wire.queue import Amount, Share


class AmountRow(Amount):
    """An amount with its bar and its words."""

    __slots__ = ()

    @classmethod
    def of(
        cls, what: str, used: float | None, cap: float | None, nominal: float | None = None
    ) -> AmountRow:
        """Return an amount with what is free of it: never negative, None where it is not known."""
        free = None if cap is None or used is None else max(0.0, cap - used)
        return cls(what=what, used=used, cap=cap, nominal=nominal, free=free)

    @property
    def percent(self) -> float:
        """The length of a bar."""
        if not self.used:
            return 0.0
        return 100.0 if not self.cap else min(100.0, 100.0 * self.used / self.cap)

    @property
    def words(self) -> str:
        """Format as `3 of 8 nodes`, `at most 8 nodes`, `3 nodes`; `$3.20 of $40.00`."""
        if self.cap is None:
            return counted(self.what, self.used or 0)
        if self.used is None:
            return f"at most {counted(self.what, self.cap)}"
        if self.what == USD_PER_HOUR:
            return f"{usd(self.used)} of {usd(self.cap)} per hour"
        return f"{self.used:g} of {counted(self.what, self.cap)}"

    def unused(self) -> AmountRow:
        """Return the same without how much is used."""
        return AmountRow.of(self.what, None, self.cap, self.nominal)


def share_row(
    key: str, project: str, used_hours: float, weight: float | None = None, projects: int = 1
) -> Share:
    """Return what a project has used behind a planner's key; `percent` is not known yet.

    Without a name it is that of `projects` others together.
    """
    kind, place = place_words(key)
    return Share(
        kind=kind,
        place=place,
        project=project,
        used_hours=used_hours,
        weight=weight,
        counts_for=None if weight is None else used_hours / weight,
        projects=projects,
        percent=0.0,
    )


def place_words(key: str) -> tuple[str, str]:
    """Return kind and name of the machines behind a planner's key, such as `pool:a100`."""
    kind, _, name = key.partition(":")
    return kind, name
