"""Celery's entry points: one task for each reconciler, which runs its steps and nothing else.

With an id a task handles that row (a hint); without one it handles all due rows (a tick).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from celery import shared_task
from celery.signals import worker_ready

from jobs.backends import registry
from jobs.background.hints import Reconciler
from jobs.reconcilers import (
    autostop,
    billing,
    budgets,
    children,
    dependencies,
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

    def due(self) -> Iterable[int]: ...
    def step(self, row_id: int, /) -> None: ...


class _Sweep(Protocol):
    """A reconciler that handles everything in one step."""

    def step(self) -> None: ...


_OF_ROWS: dict[Reconciler, _OfRows] = {
    "autostop": autostop,
    "budgets": budgets,
    "children": children,
    "dependencies": dependencies,
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


@worker_ready.connect
def warm_up(**_: object) -> None:
    """Prepare the backends, so that the first job does not wait for it."""
    registry.warm_up()


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
    """Run one step; its failure must not keep other rows from being handled."""
    try:
        reconciler.step(row_id)
    except Exception:
        context = {"action": "step_failed", "row": row_id, "of": name}
        log.exception("step failed", extra=context)


for _name, _reconciler in _OF_ROWS.items():
    _register_rows(_name, _reconciler)
for _name, _sweep in _SWEEPS.items():
    _register_sweep(_name, _sweep)
