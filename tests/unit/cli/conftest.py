"""The command line against a scripted portal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from monarch_client.cli.main import cli
from monarch_client.cli.session import Session
from monarch_client.rest.config import Config
from tests.unit.rest.fake_portal import FakePortal

Mportal = Callable[..., Result]


@pytest.fixture
def portal() -> FakePortal:
    return FakePortal()


@pytest.fixture
def mportal(portal: FakePortal) -> Mportal:
    """Return a function that runs a command as a signed-in user in project `rl`."""

    def invoke(*args: str, config: Config | None = None, **options: Any) -> Result:
        signed_in = Config("http://portal", "mpt_x", "rl")
        session = Session(config or signed_in, portal.options())
        return CliRunner(mix_stderr=False).invoke(cli, list(args), obj=session, **options)

    return invoke


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that sets the time zone of this machine for the test."""

    def be_in(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield be_in
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _without_the_users_own(own_config: Path) -> None:
    """Keep all tests of commands from it."""
