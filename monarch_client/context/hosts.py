"""The resources of hosts, and what is free of them: pure, and exact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from monarch_client.context.amounts import CPU, GPU, PROCESS, UNIT, Amounts, Shape, as_text
from monarch_client.context.errors import InfeasibleError

# A call that waits for others gives these back: another one may be what it waits for.
RETURNED_BY_WAITING = (CPU, PROCESS)


@dataclass
class Host:
    """The resources of one host. Free amounts are negative while resumed calls exceed them."""

    name: str
    total: Amounts
    free: Amounts = field(init=False)
    # What is free of each GPU: a whole GPU is one of them, a part shares one.
    gpus: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.free = dict(self.total)
        self.gpus = [UNIT] * (self.total.get(GPU, 0) // UNIT)

    def could_fit(self, shape: Shape) -> bool:
        """Whether the shape fits this host while nothing else runs there."""
        return all(amount <= self.total.get(name, 0) for name, amount in shape)

    def fits(self, shape: Shape) -> bool:
        """Whether the shape fits now."""
        return all(
            self._has_gpus(amount) if name == GPU else amount <= self.free.get(name, 0)
            for name, amount in shape
        )

    def take(self, shape: Shape) -> tuple[int, ...]:
        """Take a shape that fits; return the numbers of its GPUs."""
        devices: tuple[int, ...] = ()
        for name, amount in shape:
            self.free[name] -= amount
            if name == GPU:
                devices = self._take_gpus(amount)
        return devices

    def give(self, shape: Shape, devices: Iterable[int]) -> None:
        """Give back what `take` took."""
        for name, amount in shape:
            self.free[name] += amount
            if name == GPU:
                for device in devices:
                    self.gpus[device] += min(amount, UNIT)

    def pause(self, shape: Shape, *, paused: bool) -> None:
        """Give back what a waiting call does not need, or take it again, even below zero."""
        for name, amount in shape:
            if name in RETURNED_BY_WAITING:
                self.free[name] += amount if paused else -amount

    def _has_gpus(self, amount: int) -> bool:
        if amount < UNIT:
            return any(free >= amount for free in self.gpus)
        return self.gpus.count(UNIT) >= amount // UNIT

    def _take_gpus(self, amount: int) -> tuple[int, ...]:
        if amount < UNIT:
            # The fullest that has room: whole GPUs stay free.
            rooms = [(free, device) for device, free in enumerate(self.gpus) if free >= amount]
            chosen = [min(rooms)[1]]
        else:
            whole = [device for device, free in enumerate(self.gpus) if free == UNIT]
            chosen = whole[: amount // UNIT]
        for device in chosen:
            self.gpus[device] -= min(amount, UNIT)
        return tuple(chosen)


def shortage(hosts: Mapping[str, Host], shape: Shape) -> str:
    """Describe what a shape that does not fit now waits for."""
    for name, amount in shape:
        most = max(hosts.values(), key=lambda host: host.free.get(name, 0))
        free = max(0, most.free.get(name, 0))
        if free < amount:
            return f"{as_text(name, amount)}; {most.name} has {as_text(name, free)} free"
    requested = ", ".join(as_text(name, amount) for name, amount in shape)
    return f"{requested}; no host has all of it free"


def refusal(hosts: Mapping[str, Host], shape: Shape) -> InfeasibleError | None:
    """Return why no host can ever fit the shape; None if one can."""
    if any(host.could_fit(shape) for host in hosts.values()):
        return None
    for name, amount in shape:
        largest = max(hosts.values(), key=lambda host: host.total.get(name, 0), default=None)
        most = largest.total.get(name, 0) if largest else 0
        if amount > most:
            where = f"The largest host, {largest.name}, has" if most and largest else "Hosts have"
            return InfeasibleError(
                f"{as_text(name, amount)} was requested. {where} {as_text(name, most)}."
            )
    requested = ", ".join(as_text(name, amount) for name, amount in shape)
    each = "; ".join(
        f"{host.name} has " + ", ".join(as_text(name, host.total.get(name, 0)) for name, _ in shape)
        for host in hosts.values()
    )
    return InfeasibleError(f"No host has all that was requested: {requested}. {each}.")
