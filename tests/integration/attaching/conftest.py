"""Real workers, and programs that attach to them: each a process, for it has Monarch once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monarch_workers import MonarchWorkers
from tests.programs import RunProgram, runner_in

PRELUDE = """\
import asyncio, os, sys, threading, time
from pathlib import Path
from monarch.actor import Actor, endpoint
from monarch_client.attaching import meshes, profile
from monarch_client.attaching.errors import *
from monarch_client.attaching.loss import LossAlarm

class Host(Actor):
    @endpoint
    async def rank(self):
        return os.environ["SKYPILOT_NODE_RANK"]

    @endpoint
    async def forever(self):
        await asyncio.sleep(1000)

def say(*words):
    print("said:", *words, flush=True)

def spawn(mesh):
    return mesh.spawn_procs(per_host={"procs": 1}).spawn("host", Host)

def ranks(mesh):
    return sorted(value for _, value in spawn(mesh).rank.call().get(timeout=60).items())

"""


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[MonarchWorkers]:
    """Provide two workers with mutual TLS."""
    workers = MonarchWorkers(tmp_path, 2)
    yield workers
    workers.close()


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    """Run a program after the prelude, to its end; the words of its `say`."""
    run = runner_in(tmp_path)

    def run_after_prelude(text: str, *arguments: object, **variables: str) -> list[str]:
        return run(PRELUDE + text, *arguments, **variables)

    return run_after_prelude
