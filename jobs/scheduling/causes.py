"""Why a job waits: values with their numbers, and the one sentence that each is told in.

A cause may name other jobs. Whoever passes it on says which of them the reader may know of
(`told_to`): the others stay in the sentence, without their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from jobs.scheduling.amounts import counted, most_at_once, number_words, type_of, usd
from jobs.scheduling.limits import JOBS, NODES, USD_PER_HOUR, LimitKind
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

    @property
    def named(self) -> tuple[int, ...]:
        """The other jobs whose numbers it tells."""
        return ()

    def told_to(self, is_known: Callable[[int], bool]) -> Self:
        """The same without the numbers of jobs that are not known to the reader."""
        return self

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
    # When there is room at the latest, in seconds since the epoch; None: nothing bounds it.
    expected_s: float | None = None
    limit: str = ""  # a LimitKind: a pool may be called like its backend

    @property
    def sentence(self) -> str:
        """What is needed, and what there is."""
        of_type = f" {type_of(self.what)}" if type_of(self.what) else ""
        are = "is" if self.free == 1 else "are"
        return (
            f"Needs {counted(self.what, self.needed)}; {number_words(self.free)} of "
            f"{number_words(self.total)}{of_type} {are} free on {self.place}."
        )


@dataclass(frozen=True, slots=True)
class NeverRoom(NoRoom):
    """Its pool has too little in all: it waits for nobody's end, and no turn is charged for it."""


@dataclass(frozen=True, slots=True)
class Behind(Cause):
    """The machines are held for another job, whose turn it is first."""

    code: ClassVar[str] = "behind"
    job_id: int | None  # None: of a project that the reader does not see

    @property
    def sentence(self) -> str:
        """Whose turn it is."""
        return f"Waits behind {job_words(self.job_id)}, which needs more room."

    @property
    def named(self) -> tuple[int, ...]:
        """Whose turn it is first."""
        return _numbers(self.job_id)

    def told_to(self, is_known: Callable[[int], bool]) -> Self:
        """Without its number, where that is not known."""
        return self if all(map(is_known, self.named)) else replace(self, job_id=None)


@dataclass(frozen=True, slots=True)
class StoppedForIt(Cause):
    """Others are being stopped, so that it has machines."""

    code: ClassVar[str] = "preempting"
    job_ids: tuple[int, ...]
    nodes: int
    others: int = 0  # of projects that the reader does not see

    @property
    def sentence(self) -> str:
        """Whose machines it waits for."""
        is_one = len(self.job_ids) + self.others == 1
        end = "which is being stopped for it" if is_one else "which are being stopped for it"
        return f"Waits for {counted(NODES, self.nodes)} of {self._whose()}, {end}."

    def _whose(self) -> str:
        hidden = f"{self.others} jobs of other projects" if self.others > 1 else job_words(None)
        if not self.job_ids:
            return hidden
        named = ", ".join(str(each) for each in self.job_ids[:_MOST_NAMED])
        more = len(self.job_ids) - _MOST_NAMED
        named += f" and {more} more" if more > 0 else ""
        word = "job" if len(self.job_ids) == 1 else "jobs"
        return f"{word} {named} and {hidden}" if self.others else f"{word} {named}"

    @property
    def named(self) -> tuple[int, ...]:
        """Who is being stopped."""
        return self.job_ids

    def told_to(self, is_known: Callable[[int], bool]) -> Self:
        """With those alone that are known, and how many others there are."""
        known = tuple(filter(is_known, self.job_ids))
        others = self.others + len(self.job_ids) - len(known)
        return replace(self, job_ids=known, others=others)


@dataclass(frozen=True, slots=True)
class ClusterEnding(Cause):
    """Warm clusters are being ended, so that it has machines."""

    code: ClassVar[str] = "ending_cluster"
    nodes: int

    @property
    def sentence(self) -> str:
        """How many nodes it waits for."""
        return f"Waits for {counted(NODES, self.nodes)} of warm clusters, which are being ended."


@dataclass(frozen=True, slots=True)
class GaveWay(Cause):
    """It was stopped for another job, and waits for machines again."""

    code: ClassVar[str] = "preempted"
    by: int | None  # None: of a project that the reader does not see
    then: Cause  # what it waits for now

    @property
    def reason(self) -> WaitReason:
        """It has run already."""
        return WaitReason.PREEMPTED

    @property
    def sentence(self) -> str:
        """By whom, and what for now."""
        return f"Was preempted by {job_words(self.by)}. {self.then.sentence}"

    @property
    def named(self) -> tuple[int, ...]:
        """Who has preempted it, and whom it waits for now."""
        return (*_numbers(self.by), *self.then.named)

    def told_to(self, is_known: Callable[[int], bool]) -> Self:
        """Without the numbers that are not known."""
        by = self.by if all(map(is_known, _numbers(self.by))) else None
        return replace(self, by=by, then=self.then.told_to(is_known))

    def to_dict(self) -> dict[str, Any]:
        """The same for a program."""
        told = {"by": self.by, "then": self.then.sentence}
        return {"code": self.code, "reason": str(self.reason), **told}


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
        most, used = most_at_once(self.what, self.cap), number_words(self.used)
        if self.what == JOBS:
            # A person's name is written as they write it, also where a sentence begins.
            is_person = self.limit == LimitKind.PERSON
            return (
                f"{whose if is_person else whose[0].upper() + whose[1:]} {most}, and runs {used}."
            )
        return f"Needs {counted(self.what, self.needed)}; {whose} {most}, and has {used}."


@dataclass(frozen=True, slots=True)
class NoPrice(Cause):
    """A quota counts money, and the price of the job, or of job `of` that counts in it, is unknown.

    `problem`: why, as a sentence; empty while it is asked for.
    """

    code: ClassVar[str] = "price"
    problem: str = ""
    of: int | None = None
    of_hidden: bool = False  # of one in a project that the reader does not see

    @property
    def reason(self) -> WaitReason:
        """It is for a quota's sake."""
        return WaitReason.QUOTA

    @property
    def sentence(self) -> str:
        """What is not known, and that it is asked for."""
        if self.of is not None or self.of_hidden:
            whose = job_words(self.of)
            return f"The price of {whose}, which counts in the same quota, is being asked for."
        if self.problem:
            return f"Its price is asked for again, which a quota counts. {self.problem}"
        return "Its price is being asked for."

    @property
    def named(self) -> tuple[int, ...]:
        """Whose price it is, if it is another's."""
        return _numbers(self.of)

    def told_to(self, is_known: Callable[[int], bool]) -> Self:
        """Without its number, where that is not known."""
        if all(map(is_known, self.named)):
            return self
        return replace(self, of=None, of_hidden=True)


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
    LimitKind.QUEUE: "queue {name}",
    LimitKind.PROJECT: "project {name}",
    LimitKind.PERSON: "{name}",
    LimitKind.GROUP: "the group {name}",
    LimitKind.BACKEND: "{name}",
    LimitKind.POOL: "pool {name}",
}


def job_words(number: int | None) -> str:
    """Another job, as a sentence names it; None: one of a project that the reader does not see."""
    return "a job of another project" if number is None else f"job {number}"


def _numbers(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)
