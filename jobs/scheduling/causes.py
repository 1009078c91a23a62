"""Why a job waits: values with their numbers, and the one sentence that each is told in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from jobs.scheduling.limits import GPUS, JOBS, NODES, USD_PER_HOUR, LimitKind
from jobs.statuses import WaitReason


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause; `code` is stable, for programs."""

    code: ClassVar[str] = ""

    @property
    def reason(self) -> WaitReason:
        """The broad class, which lists show."""
        return WaitReason.CAPACITY

    @property
    def sentence(self) -> str:
        """What its owner reads."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The same for a program."""
        return {"code": self.code, "reason": str(self.reason), **asdict(self)}


@dataclass(frozen=True, slots=True)
class NoRoom(Cause):
    """There are too few machines free, and it is the first who waits for them."""

    code: ClassVar[str] = "no_room"
    place: str
    what: str
    needed: float
    free: float
    total: float
    kept: int = 0
    # When there is room at the latest, in seconds since the epoch; None: nothing bounds it.
    expected_s: float | None = None

    @property
    def sentence(self) -> str:
        """What is needed, and what there is."""
        kept = f" {counted(NODES, self.kept)} kept for a next job." if self.kept else ""
        of_type = f" {_type_of(self.what)}" if _type_of(self.what) else ""
        return (
            f"Needs {counted(self.what, self.needed)}; {_number(self.free)} of "
            f"{_number(self.total)}{of_type} are free on {self.place}.{kept}"
        )


@dataclass(frozen=True, slots=True)
class NeverRoom(NoRoom):
    """Its pool has too little in all: it waits for nobody's end, and no turn is charged for it."""


@dataclass(frozen=True, slots=True)
class Behind(Cause):
    """The machines are held for another job, whose turn it is first."""

    code: ClassVar[str] = "behind"
    job_id: int

    @property
    def sentence(self) -> str:
        """Whose turn it is."""
        return f"Waits behind job {self.job_id}, which needs more room."


@dataclass(frozen=True, slots=True)
class StoppedForIt(Cause):
    """Others are being stopped, so that it has machines."""

    code: ClassVar[str] = "preempting"
    job_ids: tuple[int, ...]
    nodes: int

    @property
    def sentence(self) -> str:
        """Whose machines it waits for."""
        nodes = counted(NODES, self.nodes)
        if len(self.job_ids) == 1:
            return f"Waits for {nodes} of job {self.job_ids[0]}, which is being stopped for it."
        named = ", ".join(str(each) for each in self.job_ids[:_MOST_NAMED])
        more = len(self.job_ids) - _MOST_NAMED
        others = f" and {more} more" if more > 0 else ""
        return f"Waits for {nodes} of jobs {named}{others}, which are being stopped for it."


@dataclass(frozen=True, slots=True)
class GaveWay(Cause):
    """It was stopped for another job, and waits for machines again."""

    code: ClassVar[str] = "preempted"
    by: int
    then: str  # what it waits for now, as a sentence

    @property
    def reason(self) -> WaitReason:
        """It has run already."""
        return WaitReason.PREEMPTED

    @property
    def sentence(self) -> str:
        """By whom, and what for now."""
        return f"Was preempted by job {self.by}. {self.then}"


@dataclass(frozen=True, slots=True)
class OverQuota(Cause):
    """A limit of what may run at once is used up."""

    code: ClassVar[str] = "quota"
    limit: str  # a LimitKind
    name: str
    what: str
    needed: float
    used: float
    cap: float

    @property
    def reason(self) -> WaitReason:
        """A quota."""
        return WaitReason.QUOTA

    @property
    def sentence(self) -> str:
        """Whose limit, and how much of it is used."""
        if self.what == USD_PER_HOUR:
            left = f"{usd(max(0.0, self.cap - self.used))} of {usd(self.cap)} is left"
            where = _SPENDERS[LimitKind(self.limit)].format(name=self.name)
            return f"Needs {counted(self.what, self.needed)}; {left} {where}."
        whose = _OWNERS[LimitKind(self.limit)].format(name=self.name)
        return (
            f"Needs {counted(self.what, self.needed)}; {whose} {_number(self.used)} of "
            f"{_allowed(self.what, self.cap)} at once."
        )


@dataclass(frozen=True, slots=True)
class NoPrice(Cause):
    """A quota counts money, and the price of the job, or of job `of` that counts in it, is unknown.

    `problem`: why, as a sentence; empty while it is asked for.
    """

    code: ClassVar[str] = "price"
    problem: str = ""
    of: int | None = None

    @property
    def reason(self) -> WaitReason:
        """It is for a quota's sake."""
        return WaitReason.QUOTA

    @property
    def sentence(self) -> str:
        """What is not known, and that it is asked for."""
        if self.of is not None:
            return (
                f"The price of job {self.of}, which counts in the same quota, is being asked for."
            )
        if self.problem:
            return f"Its price is asked for again, which a quota counts. {self.problem}"
        return "Its price is being asked for."


@dataclass(frozen=True, slots=True)
class Told(Cause):
    """Something outside the plan keeps it back, and has said so: a backend, a budget, a cluster."""

    code: ClassVar[str] = "told"
    message: str
    because: WaitReason = WaitReason.CAPACITY

    @property
    def reason(self) -> WaitReason:
        """As whoever told it says."""
        return self.because

    @property
    def sentence(self) -> str:
        """As it was told."""
        return self.message

    def to_dict(self) -> dict[str, Any]:
        """The same for a program."""
        return {"code": self.code, "reason": str(self.reason), "message": self.message}


# Of many jobs that are stopped for one, so many are named.
_MOST_NAMED = 5
# Of whom the limits are that may count money.
_SPENDERS: Mapping[LimitKind, str] = {
    LimitKind.QUEUE: "in queue {name}",
    LimitKind.PROJECT: "in project {name}",
    LimitKind.PERSON: "for {name}",
}
_OWNERS: Mapping[LimitKind, str] = {
    LimitKind.QUEUE: "queue {name} has",
    LimitKind.PROJECT: "project {name} has",
    LimitKind.PERSON: "{name} has",
    LimitKind.GROUP: "the group {name} has",
    LimitKind.BACKEND: "{name} has",
    LimitKind.POOL: "pool {name} has",
}


def counted(what: str, amount: float) -> str:
    """An amount in words, such as `1 node`, `16 GPUs (H100)`."""
    if what == USD_PER_HOUR:
        return f"{usd(amount)} an hour"
    number = _number(amount)
    if what == NODES:
        return f"{number} node" if amount == 1 else f"{number} nodes"
    if what == JOBS:
        return f"{number} running job" if amount == 1 else f"{number} running jobs"
    word = "GPU" if amount == 1 else "GPUs"
    kind = _type_of(what)
    return f"{number} {word} ({kind})" if kind else f"{number} {word}"


def usd(amount: float) -> str:
    """An amount of money, such as `$1,234.50`, with more places below a cent."""
    is_small = 0 < amount < 0.01  # noqa: PLR2004 - a cent
    return f"${amount:.4f}" if is_small else f"${amount:,.2f}"


def _allowed(what: str, cap: float) -> str:
    return f"the {counted(what, cap)} that it may have"


def _type_of(what: str) -> str:
    return what.removeprefix(f"{GPUS}:") if what.startswith(f"{GPUS}:") else ""


def _number(amount: float) -> str:
    return str(int(amount)) if float(amount).is_integer() else f"{amount:.2f}"
