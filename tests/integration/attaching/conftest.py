"""Real workers, and programs that attach to them: each a process, for it has Monarch once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.monarch_workers import MonarchWorkers

CHECKOUT = Path(__file__).resolve().parents[3]
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
        return os.environ["RANK"]

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
RunProgram = Callable[..., list[str]]


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[MonarchWorkers]:
    """Provide two workers with mutual TLS."""
    workers = MonarchWorkers(tmp_path, 2)
    yield workers
    workers.close()


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    """Run a program to its end; the words of its `say`."""

    def run(text: str, *arguments: str) -> list[str]:
        file = tmp_path / "program.py"
        file.write_text(PRELUDE + text)
        done = subprocess.run(
            [sys.executable, file, *arguments],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return [
            line.removeprefix("said: ")
            for line in done.stdout.splitlines()
            if line.startswith("said: ")
        ]

    return run
