"""Options of tasks and actors, as the caller writes them."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monarch_client.context.texts import check_text

MAX_RETRIES = 3
_MOST = 2**31 - 1


class Lifetime(str, enum.Enum):
    """The end of an actor's life."""

    EPHEMERAL = "ephemeral"
    """Until its last handle is deleted and its calls have ended."""

    DETACHED = "detached"
    """Until the context is closed, or its job ends. Nothing outlives the hosts of the job."""


@dataclass(frozen=True)
class Resource:
    """An amount of a named resource."""

    name: str
    quantity: float

    def __post_init__(self) -> None:
        if self.quantity < 0:
            raise ValueError(f"{self.name}: a quantity cannot be negative, and is {self.quantity}")


@dataclass(frozen=True)
class RuntimeEnv:
    """The environment that tasks run in: variables, and packages that pip would install.

    `minimum_resources` and `maximum_resources` describe a whole job; tasks ignore them.
    """

    package_requirements: Sequence[str] = ()
    minimum_resources: Sequence[Resource] = ()
    maximum_resources: Sequence[Resource] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for package in self.package_requirements:
            check_text("a package requirement", package)
            if not package.strip():
                raise ValueError("a package requirement cannot be empty")
        for name, value in self.env.items():
            check_text("the name of a variable", name)
            check_text(f"the value of the variable {name}", value)
        most = {each.name: each.quantity for each in self.maximum_resources}
        for each in self.minimum_resources:
            if each.quantity > most.get(each.name, each.quantity):
                raise ValueError(
                    f"{each.name}: the minimum {each.quantity} is greater than the maximum "
                    f"{most[each.name]}"
                )


@dataclass(frozen=True)
class TaskOptions:
    """Options of one task.

    Without `resources` a task takes one CPU. `max_calls=1`: a process of its own for each call.
    `max_retries`: how often the task is started again after its process or host was lost; an
    error that the task raises is never retried.
    """

    resources: Mapping[str, float] | None = None
    runtime_env: RuntimeEnv | None = None
    name: str | None = None
    max_calls: int = 0
    max_retries: int = MAX_RETRIES

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_count("max_calls", self.max_calls, least=0)
        _check_count("max_retries", self.max_retries, least=0)


@dataclass(frozen=True)
class ActorOptions:
    """Options of one actor.

    Without `resources` an actor takes no CPU. `max_concurrency`: how many calls run at once, in
    threads, or on one event loop if the class has async methods; by default 1, and 1000 with async
    methods. With `get_if_exists` a name that is taken returns that actor, whatever the other
    arguments are.
    """

    name: str | None = None
    get_if_exists: bool = False
    resources: Mapping[str, float] | None = None
    lifetime: Lifetime = Lifetime.EPHEMERAL
    max_concurrency: int | None = None
    runtime_env: RuntimeEnv | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not isinstance(self.get_if_exists, bool):
            raise TypeError(f"get_if_exists is True or False, and not {self.get_if_exists!r}")
        if self.max_concurrency is not None:
            _check_count("max_concurrency", self.max_concurrency, least=1)
        if self.get_if_exists and not self.name:
            raise ValueError("get_if_exists needs a name")


def _check_name(name: object) -> None:
    if name is not None:
        check_text("the name", name)


def _check_count(noun: str, value: object, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{noun} is an integer, and not {value!r}")
    if not least <= value <= _MOST:
        raise ValueError(f"{noun} is from {least} to {_MOST}, and not {value}")
