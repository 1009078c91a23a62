"""The processes of the supervisor: SkyPilot's server too, from the first cloud on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from monarch_portal.embedded import supervisor as supervisors
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.supervisor import Supervisor


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(supervisors.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def supervisor(home: Home) -> Iterator[Supervisor]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Supervisor(home, listener, lambda: None)


def names(supervisor: Supervisor) -> list[str]:
    supervisor._add_skypilot()
    return [part.name for part in supervisor._roles]


def add_cloud(home: Home) -> None:
    file = home.skypilot.home / ".slurm" / "config"
    file.parent.mkdir(parents=True)
    file.touch()


@override_settings(MPORTAL_SKYPILOT="auto", MPORTAL_SKYPILOT_ENDPOINT="")
def test_the_first_cloud_brings_the_server_without_a_restart(
    supervisor: Supervisor, home: Home, clock: list[float]
) -> None:
    assert names(supervisor) == []
    add_cloud(home)
    clock[0] += supervisors.SKYPILOT_INTERVAL_S + 1
    assert names(supervisor) == ["skypilot"]
    clock[0] += supervisors.SKYPILOT_INTERVAL_S + 1
    assert names(supervisor) == ["skypilot"]


@override_settings(MPORTAL_SKYPILOT="on", MPORTAL_SKYPILOT_ENDPOINT="")
def test_it_can_be_wanted_without_any_cloud(supervisor: Supervisor) -> None:
    assert names(supervisor) == ["skypilot"]


@pytest.mark.parametrize(
    ("setting", "endpoint"), [("off", ""), ("on", "https://skypilot.example.org")]
)
def test_it_is_not_brought_where_it_is_off_or_another_exists(
    supervisor: Supervisor, home: Home, setting: str, endpoint: str
) -> None:
    add_cloud(home)
    with override_settings(MPORTAL_SKYPILOT=setting, MPORTAL_SKYPILOT_ENDPOINT=endpoint):
        assert names(supervisor) == []
