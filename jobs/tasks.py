"""Celery's entry points: the tick, and one task for each reconciler, which runs its steps.

With an id a reconciler's task handles that row; without one it handles all due rows. The tick sends
that hint to the reconcilers that have work, so that a slow one delays no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from celery import shared_task
from celery.signals import worker_ready

from jobs.backends import registry
from jobs.background.hints import Reconciler, wake
from jobs.background.ticks import TICK
from jobs.live import infra_cache
from jobs.reconcilers import (
    autostop,
    billing,
    budgets,
    children,
    dependencies,
    gateway,
    infra,
    job_budgets,
    log_policies,
    orphans,
    prices,
    provisioning,
    queue,
    recovering,
    retention,
    running,
    schedules,
    sealing,
    stopping,
    teardown,
)

log = logging.getLogger(__name__)


class _OfRows(Protocol):
    """A reconciler that handles one row at a time."""

    def due(self) -> Sequence[int]: ...
    def step(self, row_id: int, /) -> None: ...


class _Sweep(Protocol):
    """A reconciler that handles everything in one step."""

    def step(self) -> None: ...


_OF_ROWS: dict[Reconciler, _OfRows] = {
    "autostop": autostop,
    "budgets": budgets,
    "children": children,
    "dependencies": dependencies,
    "gateway": gateway,
    "job_budgets": job_budgets,
    "log_policies": log_policies,
    "provisioning": provisioning,
    "recovering": recovering,
    "running": running,
    "schedules": schedules,
    "sealing": sealing,
    "stopping": stopping,
    "teardown": teardown,
}
_SWEEPS: dict[Reconciler, _Sweep] = {
    "billing": billing,
    "infra": infra,
    "orphans": orphans,
    "prices": prices,
    "queue": queue,
    "retention": retention,
}
# Cheap checks of frequent sweeps: without work a tick does not run them.
_IS_DUE: dict[Reconciler, Callable[[], bool]] = {
    "billing": billing.is_due,
    "infra": infra_cache.is_wanted,
    "prices": prices.is_due,
    "queue": queue.is_due,
}


@worker_ready.connect
def warm_up(**_: object) -> None:
    """Prepare the backends, so that the first job does not wait for it."""
    registry.warm_up()


@shared_task(name=TICK)
def tick(names: list[Reconciler]) -> None:
    """Send a hint to each reconciler of `names` that has work."""
    for name in names:
        with _harmless("tick failed", of=name):
            if _has_work(name):
                wake(name)


def _has_work(name: Reconciler) -> bool:
    if (reconciler := _OF_ROWS.get(name)) is not None:
        return bool(reconciler.due())
    return name not in _IS_DUE or _IS_DUE[name]()


def _register_rows(name: Reconciler, reconciler: _OfRows) -> None:
    @shared_task(name=f"jobs.{name}")
    def run(row_id: int | None = None) -> None:
        for each in reconciler.due() if row_id is None else [row_id]:
            _step(name, reconciler, each)


def _register_sweep(name: Reconciler, reconciler: _Sweep) -> None:
    @shared_task(name=f"jobs.{name}")
    def run() -> None:
        reconciler.step()


def _step(name: Reconciler, reconciler: _OfRows, row_id: int) -> None:
    with _harmless("step failed", of=name, row=row_id):
        reconciler.step(row_id)


@contextmanager
def _harmless(message: str, **context: object) -> Iterator[None]:
    """Log a failure, which must not keep other rows or reconcilers from being handled."""
    try:
        yield
    except Exception:
        log.exception(message, extra={"action": message.replace(" ", "_"), **context})


for _name, _reconciler in _OF_ROWS.items():
    _register_rows(_name, _reconciler)
for _name, _sweep in _SWEEPS.items():
    _register_sweep(_name, _sweep)
