"""A bounded summary of a context for the portal: its calls, actors, objects and failures."""

from __future__ import annotations

import os
from collections import Counter
from typing import Protocol

from monarch_client.context.driver.activity import Activity, shown
from monarch_client.context.driver.actors import Actors
from monarch_client.context.driver.executors import ExecutorPool
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.stored_objects import StoredObjects
from monarch_client.context.driver.tasks import Tasks
from monarch_client.context.hosting.loop import Loop
from monarch_client.wire.tasks import ContextHost, ContextSummary

MOST_ACTORS = 100
MOST_HOSTS = 50


class Summarized(Protocol):
    """The driver of a context, as far as its summary shows it."""

    loop: Loop
    stored: StoredObjects
    objects: ObjectTable
    pool: ExecutorPool
    activity: Activity
    tasks: Tasks
    actors: Actors


def summary_of(driver: Summarized, *, is_open: bool, machine: str = "") -> ContextSummary:
    """Return the summary, with the machine of a driver outside of its job. With the loop's lock."""
    running: Counter[str] = Counter()
    if is_open:
        running.update(driver.tasks.running())
        running.update(driver.actors.running())
    actors, actors_left_out = driver.actors.rows(MOST_ACTORS, is_open=is_open)
    failures, failures_left_out = driver.activity.failures()
    hosts = driver.pool.hosts()
    if driver.stored.home not in hosts:
        # The driver of a mesh keeps what it puts.
        hosts.append(driver.stored.home)
    return ContextSummary(
        pid=os.getpid(),
        machine=shown(machine),
        is_open=is_open,
        objects=max(0, len(driver.objects) - len(driver.actors)),
        tasks=driver.activity.rows(running),
        actors=actors,
        actors_left_out=actors_left_out,
        hosts=[_host_row(driver, name) for name in hosts[:MOST_HOSTS]],
        hosts_left_out=max(0, len(hosts) - MOST_HOSTS),
        failures=failures,
        failures_left_out=failures_left_out,
    )


def _host_row(driver: Summarized, name: str) -> ContextHost:
    objects, size = driver.stored.held_by(name)
    # Of the stores, that of the driver alone is in this process.
    usage = driver.stored.store.usage() if name == driver.stored.home else None
    return ContextHost(
        name=shown(name),
        processes=driver.pool.count_on(name),
        objects=objects,
        bytes=size,
        spilled=usage.spilled if usage else None,
        limit=usage.limit if usage else None,
    )
