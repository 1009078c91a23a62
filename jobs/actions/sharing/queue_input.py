"""Administrators' settings of pools, queues, quotas and weights, read with every error at once."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from django.db import IntegrityError

from jobs.background.hints import wake_on_commit
from jobs.errors import PortalError
from jobs.live.channel import publish_queue_on_commit
from jobs.models.project import RESERVED_SLUGS, SLUG_PATTERN
from jobs.scheduling.limits import GPUS, JOBS, NODES, USD_PER_HOUR, gpus_of
from monarch_client.spec.durations import seconds_in

MOST_CAPS, MOST_OF_ONE = 50, 1_000_000
_USD_PLACES = 6  # of a price
LONGEST_S = 366 * 86_400
_TYPE = re.compile(r"[A-Z0-9][A-Z0-9._-]{0,59}")
_MOST_NAMED = 20
_SHOWN = 60  # characters of what was sent that an answer repeats


_P = ParamSpec("_P")
_R = TypeVar("_R")


def makes_or_changes(action: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have `action`, one transaction that looks for a row and else makes it, change what it finds.

    Of two that find none at once, one fails; there is a row then that the second try changes.
    """

    @functools.wraps(action)
    def once_more(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return action(*args, **kwargs)
        except IntegrityError:
            return action(*args, **kwargs)

    return once_more


class InvalidSettingsError(PortalError):
    """The error of invalid settings; nothing was changed. `data["errors"]` has each."""

    code = "invalid_settings"
    http_status = 422


class Reading:
    """A reader of single values that collects all of their errors."""

    def __init__(self) -> None:
        self.errors: list[dict[str, str]] = []

    def wrong(self, path: str, message: str) -> None:
        """Note what is wrong with the value at `path`."""
        self.errors.append({"path": path, "code": "invalid", "message": message})

    def require_none(self) -> None:
        """Raise InvalidSettingsError with every error, if there is one."""
        if self.errors:
            said = " ".join(f"{row['path']}: {row['message']}" for row in self.errors)
            raise InvalidSettingsError(said, errors=self.errors)

    def name(self, value: str, path: str = "name") -> str:
        """Check the name of a new queue or pool."""
        if not re.fullmatch(SLUG_PATTERN, value):
            self.wrong(
                path,
                f"{shown(value)} is no name: a small letter first, then up to 38 small letters, "
                "digits and dashes.",
            )
        return value

    def slug(self, value: str) -> str:
        """Check the slug of a project: a name that begins no path of the portal itself."""
        if value in RESERVED_SLUGS:
            self.wrong("slug", f"{value} is reserved for the portal's own pages. Choose another.")
        return self.name(value, path="slug")

    def whole(self, path: str, value: Any, least: int, most: int) -> int:
        """Read a whole number from `least` to `most`."""
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.wrong(path, f"{shown(value)} is no whole number from {least:,} to {most:,}.")
            return least
        return value

    def usd(self, path: str, value: Any) -> float:
        """Read an amount of money, not negative."""
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
        # What is not finite is not within.
        if not 0 <= number <= MOST_OF_ONE or round(number, _USD_PLACES) != number:
            self.wrong(path, f"{shown(value)} is no amount of US$ from 0 to {MOST_OF_ONE:,}.")
            return 0
        return number

    def _count(self, path: str, value: Any) -> float:
        return self.whole(path, value, 0, MOST_OF_ONE)

    def seconds(self, path: str, value: str) -> int:
        """Read a length of time of a second or more, such as 12h."""
        seconds = seconds_in(value)
        if seconds is None or not 1 <= seconds <= LONGEST_S:
            self.wrong(path, f"{shown(value)} is no length of time such as 12h or 7d, up to 366d.")
            return 1
        return seconds

    def weight(self, value: Any) -> float:
        """Read a proportion from 0.001 to 1000."""
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
        if not (math.isfinite(number) and 0.001 <= number <= 1000):  # noqa: PLR2004 - as in the message
            self.wrong("weight", f"{shown(value)} is no number from 0.001 to 1000.")
        return float(number)

    def one_of(self, path: str, value: str, known: Iterable[str], kind: str) -> None:
        """Require that `value` is one of the `known` ones."""
        there = sorted(known)
        if value not in there:
            more = ", ..." if len(there) > _MOST_NAMED else ""
            listed = f"there are: {', '.join(there[:_MOST_NAMED])}{more}"
            listed = listed if there else "there is none yet"
            self.wrong(path, f"There is no {kind} {shown(value)}; {listed}.")

    def caps(
        self, value: Mapping[str, Any], *, of_machines: bool = False, path: str = "caps"
    ) -> dict[str, float]:
        """Read amounts by resource, with types of GPUs in capitals as jobs have them."""
        caps: dict[str, float] = {}
        for what, amount in list(value.items())[: MOST_CAPS + 1]:
            counted = self._counted(path, what, of_machines=of_machines)
            if counted in caps:
                self.wrong(f"{path}.{shown(what)}", "Named twice: types are compared without case.")
            number = self.usd if counted == USD_PER_HOUR else self._count
            caps[counted] = number(f"{path}.{shown(what)}", amount)
        if len(caps) > MOST_CAPS:
            self.wrong(path, f"Names more than {MOST_CAPS} things.")
        return caps

    def _counted(self, path: str, what: str, *, of_machines: bool) -> str:
        kind, colon, gpu = what.partition(":")
        kind, gpu = kind.lower(), gpu.upper()
        # A part of its own a project has of machines, not of money.
        of_money = () if of_machines or path == "nominal" else (USD_PER_HOUR,)
        plain = (NODES, GPUS) if of_machines else (JOBS, NODES, GPUS, *of_money)
        if not colon and kind in plain:
            return kind
        if kind == GPUS and _TYPE.fullmatch(gpu):
            return gpus_of(gpu)
        known = ", ".join([*plain, f"{GPUS}:TYPE such as {GPUS}:H100"])
        self.wrong(
            f"{path}.{shown(what)}", f"Nothing is counted as {shown(what)}; there are: {known}."
        )
        return what


def shown(value: object) -> str:
    """Return the value as an answer repeats it, shortened."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def plan_queue_again() -> None:
    """Plan the queue again after this transaction, and have open pages read it again."""
    wake_on_commit("queue")
    publish_queue_on_commit()
