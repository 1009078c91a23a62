"""The gateway's loop: it survives failures of a look, and does not end unnoticed."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from django.db import InterfaceError

from jobs.gateway import process
from jobs.gateway.process import Gateway


@pytest.fixture(autouse=True)
def _quick(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MPORTAL_GATEWAY_LISTEN = ""
    settings.MPORTAL_GATEWAY_SOCKET = tmp_path / "gateway" / "connections"
    monkeypatch.setattr(process, "LOOK_S", 0.01)


async def run_with(looks: list[BaseException]) -> None:
    """Run a gateway whose looks fail in turn; the one after them ends it as the supervisor does."""

    async def look() -> None:
        if looks:
            raise looks.pop(0)
        os.kill(os.getpid(), signal.SIGTERM)

    gateway = Gateway()
    gateway.look = look
    await asyncio.wait_for(gateway.run(), 5)


def test_the_process_looks_on_after_any_failure() -> None:
    failures: list[BaseException] = [InterfaceError("connection closed"), ValueError("a fault")]
    asyncio.run(run_with(failures))
    assert not failures


def test_the_process_ends_with_its_loop() -> None:
    with pytest.raises(RuntimeError, match="loop has ended"):
        asyncio.run(run_with([asyncio.CancelledError()]))
