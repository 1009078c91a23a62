"""Causes of waiting: values with their numbers, and the one sentence that each is reported in.

A cause may name other jobs. Its caller decides which of them the reader may know of
(`visible_to`): the others stay in the sentence, without their numbers.
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
        """Message for the job's owner."""
        raise NotImplementedError

    @property
    def named(self) -> tuple[int, ...]:
        """Numbers of the other jobs that the cause names."""
        return ()

    def visible_to(self, is_known: Callable[[int], bool]) -> Self:
        """Return the cause without the numbers of jobs that the reader does not know."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Convert the cause to JSON values."""
        return {"code": self.code, "reason": str(self.reason), **asdict(self)}


@dataclass(frozen=True, slots=True)
class NoRoom(Cause):
    """Too few free machines, for the first job that waits for them."""

    code: ClassVar[str] = "no_room"
    place: str
    what: str
    needed: float
    free: float
    total: float
    # When it has capacity at the latest, in seconds since the epoch; None: there is no bound.
    expected_s: float | None = None
    limit: str = ""  # a LimitKind: a pool may be called like its backend
    ending: float = 0.0  # what is being given back, and will be free soon

    @property
    def sentence(self) -> str:
        """Message with the request and the free capacity."""
        of_type = f" {type_of(self.what)}" if type_of(self.what) else ""
        are = "is" if self.free == 1 else "are"
        return (
            f"Needs {counted(self.what, self.needed)}; {number_words(self.free)} of "
            f"{number_words(self.total)}{of_type} {are} free on {self.place}{self._soon}."
        )

    @property
    def _soon(self) -> str:
        if not self.ending:
            return ""
        return f", {number_words(self.ending)} {'is' if self.ending == 1 else 'are'} ending"


@dataclass(frozen=True, slots=True)
class NeverRoom(NoRoom):
    """A request beyond the whole pool: it waits for no job's end, and its usage is not charged."""


@dataclass(frozen=True, slots=True)
class Behind(Cause):
    """A wait for machines that are reserved for an earlier job."""

    code: ClassVar[str] = "behind"
    job_id: int | None  # None: of a project that the reader does not see

    @property
    def sentence(self) -> str:
        """Message with the earlier job."""
        return f"Waits behind {job_words(self.job_id)}, for which the next machines are reserved."

    @property
    def named(self) -> tuple[int, ...]:
        """Number of the earlier job."""
        return _numbers(self.job_id)

    def visible_to(self, is_known: Callable[[int], bool]) -> Self:
        """Return the cause without the job's number, where that is not known."""
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
        """Message with the jobs whose machines it waits for."""
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
        """Numbers of the jobs that are being stopped."""
        return self.job_ids

    def visible_to(self, is_known: Callable[[int], bool]) -> Self:
        """Return the cause with the known jobs alone, and the number of others."""
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
        """Message with the number of nodes."""
        return f"Waits for {counted(NODES, self.nodes)} of warm clusters, which are being ended."


@dataclass(frozen=True, slots=True)
class Preempted(Cause):
    """A wait of a preempted job for machines again."""

    code: ClassVar[str] = "preempted"
    by: int | None  # None: of a project that the reader does not see
    then: Cause  # what it waits for now

    @property
    def reason(self) -> WaitReason:
        """Preemption: the job has run already."""
        return WaitReason.PREEMPTED

    @property
    def sentence(self) -> str:
        """Message with the preempting job and the present cause."""
        return f"Was preempted by {job_words(self.by)}. {self.then.sentence}"

    @property
    def named(self) -> tuple[int, ...]:
        """Numbers of the preempting job and of the jobs in the present cause."""
        return (*_numbers(self.by), *self.then.named)

    def visible_to(self, is_known: Callable[[int], bool]) -> Self:
        """Return the cause without the numbers that are not known."""
        by = self.by if all(map(is_known, _numbers(self.by))) else None
        return replace(self, by=by, then=self.then.visible_to(is_known))

    def to_dict(self) -> dict[str, Any]:
        """Convert the cause to JSON values."""
        fields = {"by": self.by, "then": self.then.sentence}
        return {"code": self.code, "reason": str(self.reason), **fields}


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
        """Message with the limit's owner, and how much of it is used."""
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

    `problem`: why, as a sentence; empty while the price is being requested.
    """

    code: ClassVar[str] = "price"
    problem: str = ""
    of: int | None = None
    of_hidden: bool = False  # of one in a project that the reader does not see

    @property
    def reason(self) -> WaitReason:
        """Quota: only a quota needs the price."""
        return WaitReason.QUOTA

    @property
    def sentence(self) -> str:
        """Message with the unknown price, and that it is being requested."""
        if self.of is not None or self.of_hidden:
            whose = job_words(self.of)
            return f"The price of {whose}, which counts in the same quota, is being requested."
        if self.problem:
            return f"Its price, which a quota counts, is being requested again. {self.problem}"
        return "Its price is being requested."

    @property
    def named(self) -> tuple[int, ...]:
        """Number of the job with the unknown price, if it is another one."""
        return _numbers(self.of)

    def visible_to(self, is_known: Callable[[int], bool]) -> Self:
        """Return the cause without the job's number, where that is not known."""
        if all(map(is_known, self.named)):
            return self
        return replace(self, of=None, of_hidden=True)


@dataclass(frozen=True, slots=True)
class ReportedBlocker(Cause):
    """A report from outside the plan that keeps the job waiting: by a backend, budget, cluster."""

    code: ClassVar[str] = "told"
    message: str
    because: WaitReason = WaitReason.CAPACITY

    @property
    def reason(self) -> WaitReason:
        """Reason that the report gives."""
        return self.because

    @property
    def sentence(self) -> str:
        """Message of the report, unchanged."""
        return self.message

    def to_dict(self) -> dict[str, Any]:
        """Convert the cause to JSON values."""
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
    """Name another job in a sentence; None: one of a project that the reader does not see."""
    return "a job of another project" if number is None else f"job {number}"


def _numbers(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)
