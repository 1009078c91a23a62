"""The job of a RemoteJob: where it is submitted, and that it ends with its program."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from monarch_client.errors import RefusedError
from monarch_client.gateway.remote import sources
from monarch_client.rest.config import Config
from tests.each_case import check_each
from tests.struck_programs import NUMBERS, said_when_struck
from tests.unit.rest.fake_portal import FakePortal


@pytest.mark.parametrize(("argument", "chosen"), [(None, "named"), ("argument", "argument")])
def test_the_argument_then_the_specification_then_the_sign_in_give_the_project(
    monkeypatch: pytest.MonkeyPatch, argument: str | None, chosen: str
) -> None:
    portal = FakePortal()
    monkeypatch.setattr(sources, "load", lambda _: Config("http://portal", "mpt_x", "signed-in"))
    monkeypatch.setattr(sources, "signed_in", lambda _: portal.client())
    workers = sources.PortalWorkers({"portal": {"project": "named"}}, argument)
    with pytest.raises(RefusedError):
        workers.find()
    assert [each.url.path for each in portal.requests] == [f"/api/v1/projects/{chosen}/jobs"]


WAITS = """
from monarch_client.gateway.remote import sources
from monarch_client.rest.config import Config

sources.load = lambda _: Config("http://portal", "mpt_x", "rl")
sources.signed_in = lambda _: client
sources.PortalWorkers({}, "rl").find()
"""


def test_a_signal_while_the_job_starts_ends_it() -> None:
    def ends(number: signal.Signals) -> None:
        assert said_when_struck(WAITS, number) == "cancelled"

    check_each(NUMBERS, ends)


class _Connection:
    """A connection with meshes, which the source closes."""

    def __init__(self) -> None:
        self.meshes = {"trainers": SimpleNamespace(), "generators": SimpleNamespace()}
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_the_job_ends_when_its_last_mesh_is_shut_down() -> None:
    workers = sources.PortalWorkers({}, "rl")
    connection = workers._connection = _Connection()
    meshes = workers.attached()
    for name, is_last in (("trainers", False), ("trainers", False), ("generators", True)):
        meshes[name].end_workers()
        assert connection.is_closed == is_last
