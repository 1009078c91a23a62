"""A caller whose child never imports SkyPilot."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from tests.waiting import eventually

CHILD = (str(Path(__file__).with_name("standin_child.py")),)
CallerMaker = Callable[..., SkyCaller]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def options(tmp_path: Path) -> CallerOptions:
    return CallerOptions(tmp_path / "home", "http://127.0.0.1:9", "sky_secret")


@pytest.fixture
def make_caller(options: CallerOptions) -> Iterator[CallerMaker]:
    made: list[SkyCaller] = []

    def make(**settings: Any) -> SkyCaller:
        caller = SkyCaller(settings.pop("options", options), **{"child": CHILD} | settings)
        made.append(caller)
        return caller

    yield make
    for caller in made:
        pid = caller.child_pid
        caller.close()
        assert pid is None or eventually(lambda pid=pid: not is_alive(pid))


@pytest.fixture
def caller(make_caller: CallerMaker) -> SkyCaller:
    return make_caller()
