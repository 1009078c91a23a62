"""Requests and the limits on them: machines and quotas are counted in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

NODES = "nodes"
JOBS = "jobs"
GPUS = "gpus"  # of any type; of one type: see `gpus_of`
USD_PER_HOUR = "usd_per_hour"  # the price of an hour, to six places

# What sums of prices are off by, not being whole numbers; less than any price differs by.
_DUST = 1e-7

# What is counted, with its number, such as (("jobs", 1), ("nodes", 2), ("gpus:H100", 16)).
Amounts = tuple[tuple[str, float], ...]


def gpus_of(kind: str) -> str:
    """Return the key under which GPUs of one type are counted."""
    return f"{GPUS}:{kind}"


class LimitKind(StrEnum):
    """Kinds of owners of a limit."""

    BACKEND = "backend"
    POOL = "pool"
    QUEUE = "queue"
    PROJECT = "project"
    PERSON = "person"
    GROUP = "group"  # jobs that say they must not run at once

    @property
    def is_machines(self) -> bool:
        """Whether it limits existing machines, and not an owner's part of them."""
        return self is LimitKind.BACKEND or self is LimitKind.POOL


@dataclass(slots=True)
class Limit:
    """`caps` and `used` by what is counted; what no cap names is not limited.

    `nominal` is a project's own part;
    what it has beyond that, up to `caps`, it has borrowed. `name` is for sentences, and says where
    a quota holds, such as `ana in project rl`; `whose` is the owner's alone. `unpriced` is a job
    that counts in it and whose price is unknown. A plan takes copies and fills them.
    """

    kind: LimitKind
    name: str
    caps: dict[str, float]
    used: dict[str, float] = field(default_factory=dict)
    nominal: dict[str, float] = field(default_factory=dict)
    unpriced: int | None = None
    whose: str = ""

    @property
    def counts_money(self) -> bool:
        """Whether it limits what an hour may cost."""
        return USD_PER_HOUR in self.caps

    def copy(self) -> Limit:
        """Return a copy that can be filled without changing this limit."""
        return replace(self, used=dict(self.used))

    def free(self, what: str) -> float | None:
        """Return the free capacity, never negative; None without a limit."""
        cap = self.caps.get(what)
        return None if cap is None else max(0.0, cap - self.used.get(what, 0.0))

    def lacks(self, demand: Amounts) -> str | None:
        """Return the first resource of `demand` with too little free capacity; None: it fits."""
        for what, amount in demand:
            cap = self.caps.get(what)
            if cap is not None and amount and amount > cap - self.used.get(what, 0.0) + _DUST:
                return what
        return None

    def never_has(self, demand: Amounts) -> str | None:
        """Return the first resource of `demand` that is more than the limit itself."""
        for what, amount in demand:
            cap = self.caps.get(what)
            if cap is not None and amount > cap:
                return what
        return None

    def take(self, demand: Amounts) -> None:
        """Count `demand` as used."""
        for what, amount in demand:
            self.used[what] = self.used.get(what, 0.0) + amount


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A request, shared by all jobs that request the same in the same pool.

    `limits` are the keys of all that hold for it. Whether one of them fits answers for all, so a
    plan checks once a shape: make one for all equal jobs (it is compared by identity, since
    a plan looks it up for each job).

    Where a limit counts money, the price is in `demand`; as long as it is unknown, `unpriced` is
    the problem: empty while it is being requested.
    """

    pool: str
    backend_name: str
    num_nodes: int
    demand: Amounts
    limits: tuple[str, ...] = ()
    units: float = 1.0  # what the share counts: GPUs, or nodes where there are none
    unpriced: str | None = None

    def amount(self, what: str) -> float:
        """Return how much of it a start takes."""
        return next((amount for name, amount in self.demand if name == what), 0.0)

    def priced(self, usd_per_hour: float) -> Shape:
        """Return the shape at this price."""
        others = tuple(each for each in self.demand if each[0] != USD_PER_HOUR)
        return replace(self, demand=(*others, (USD_PER_HOUR, usd_per_hour)), unpriced=None)

    def unpriced_for(self, problem: str) -> Shape:
        """Return the shape without a price, for this problem; "": it is being requested."""
        return replace(self, unpriced=problem)


def binding(
    shape: Shape, limits: Mapping[str, Limit], *, machines: bool
) -> Iterator[tuple[Limit, str]]:
    """Yield the limits of one sort that a start would exceed, each with the resource it lacks."""
    for key in shape.limits:
        limit = limits[key]
        if limit.kind.is_machines == machines and (what := limit.lacks(shape.demand)):
            yield limit, what


def scarce_for(shape: Shape, limits: Mapping[str, Limit]) -> tuple[str, ...]:
    """Return the keys of machines that are too few for a start, in the shape's order."""
    rooms = ((key, limits[key]) for key in shape.limits if limits[key].kind.is_machines)
    return tuple(key for key, room in rooms if room.lacks(shape.demand))
