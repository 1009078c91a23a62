"""The limit on how long a program may be without its workers, where Monarch has none."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping

from monarch_client.attaching.errors import HostLostError, SessionLostError
from monarch_client.attaching.loss import LossAlarm
from monarch_client.attaching.profile import LIMIT_S

# A worker whose port refuses has ended; some time for one that is being started again.
ENDED_S = 30.0
EVERY_S = 1.0
PROBE_EVERY_S = 10.0
PROBE_S = 5.0
# Returns why hosts are not reached now (ConnectionRefusedError: the worker has ended), or None.
Look = Callable[[], OSError | None]


class PortLook:
    """A look at a worker's port that is reached without a tunnel: it connects now and then."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._next = 0.0
        self._trouble: OSError | None = None

    def __call__(self) -> OSError | None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PROBE_EVERY_S
            self._trouble = self._connect()
        return self._trouble

    def _connect(self) -> OSError | None:
        try:
            socket.create_connection(self._address, timeout=PROBE_S).close()
        except OSError as error:
            return error
        return None


class LossWatch:
    """A thread that looks at each host's connection and raises the alarm at the first loss.

    `name` is what the error calls the workers, `hint` the advice that it ends with. `close` ends
    the watch and the alarm.
    """

    def __init__(
        self,
        name: str,
        looks: Mapping[str, Look],
        alarm: LossAlarm,
        *,
        hint: str = "",
        limit_s: float = LIMIT_S,
    ) -> None:
        self._name = name
        self._looks = dict(looks)
        self._alarm = alarm
        self._hint = hint
        self._limit_s = limit_s
        # (since when, the kind of trouble) of each host that is not reached.
        self._since: dict[str, tuple[float, type]] = {}
        self._is_closed = threading.Event()
        threading.Thread(target=self._run, daemon=True, name="loss-watch").start()

    @property
    def error(self) -> Exception | None:
        """The loss, once there is one."""
        return self._alarm.error

    def close(self) -> None:
        """Stop looking, and raise nothing any more."""
        self._is_closed.set()
        self._alarm.close()

    def _run(self) -> None:
        asleep_s = suspended_s()
        while not self._is_closed.wait(EVERY_S):
            slept_s, asleep_s = suspended_s() - asleep_s, suspended_s()
            losses = [self._judge(host, look()) for host, look in self._looks.items()]
            if slept_s > self._limit_s:
                losses.append(self._lost("this machine slept", slept_s))
            for loss in losses:
                if loss is not None and not self._is_closed.is_set():
                    self._alarm.report(loss)
                    return

    def _judge(self, host: str, trouble: OSError | None) -> Exception | None:
        if trouble is None:
            self._since.pop(host, None)
            return None
        has_ended = isinstance(trouble, ConnectionRefusedError)
        now = time.monotonic()
        since, kind = self._since.get(host, (now, type(trouble)))
        if has_ended and kind is not type(trouble):
            # The way is there again, the worker is not: it has some time from now.
            since = now
        self._since[host] = (since, type(trouble))
        away_s = now - since
        if has_ended and away_s > min(ENDED_S, self._limit_s):
            return HostLostError(
                f"{self._name}: the worker at {host} has ended. {self._hint}".strip(), [host]
            )
        if away_s <= self._limit_s:
            return None
        return self._lost(f"{host} could not be reached: {trouble}", away_s)

    def _lost(self, cause: str, away_s: float) -> SessionLostError:
        return SessionLostError(
            f"{self._name}: away for {away_s:.0f} s, the limit is {self._limit_s:.0f} s ({cause}). "
            f"Its processes are lost: attach again in a new process. {self._hint}".strip(),
            away_s,
        )


def suspended_s() -> float:
    """Return how long this machine has slept since it started; 0 where it does not count that."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock) - time.clock_gettime(time.CLOCK_MONOTONIC)
