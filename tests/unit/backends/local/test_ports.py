"""The ports that a local job needs, also where a program listens on all addresses."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.attempt_file import Ports
from jobs.backends.local import ports as local_ports
from jobs.backends.local.ports import choose_ports, needed_ports, remarks_on
from jobs.errors import BackendError
from tests.each_case import check_each

MESHES = {"workers": 2}


@pytest.fixture
def taken() -> Iterator[int]:
    """Open a port on which this process listens on every address."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        yield listener.getsockname()[1]


def spec_of(port: int, meshes: dict[str, int] | None = None) -> dict[str, Any]:
    return {"portal": {"port": port, "meshes": meshes or {}}}


def own_name() -> str:
    return Path("/proc/self/comm").read_text().strip()


def test_a_job_needs_the_ports_on_which_its_nodes_will_listen() -> None:
    def check(meshes: dict[str, int], nodes: int, needed: list[tuple[int, int]]) -> None:
        assert needed_ports(spec_of(5000, meshes), nodes, Ports(5000, 5001, 5002)) == needed

    check_each(
        [
            ({}, 1, [(0, 5002)]),
            ({}, 2, [(0, 5001), (0, 5002), (1, 5002)]),
            ({"workers": 1}, 1, [(0, 5000), (0, 5002)]),
            (MESHES, 2, [(0, 5000), (1, 5000), (0, 5001), (0, 5002), (1, 5002)]),
        ],
        check,
    )


def test_ports_that_are_free_stay_as_they_are() -> None:
    assert choose_ports(spec_of(24100, MESHES), 2) is None


def test_a_plain_job_of_one_node_does_not_mind_who_listens(taken: int) -> None:
    assert choose_ports(spec_of(taken), 1) is None


def test_the_port_of_node_streams_is_moved_in_every_job(taken: int) -> None:
    ports = choose_ports(spec_of(taken - 2), 1)
    assert ports is not None
    assert (ports[:2], ports.nodes != taken) == ((taken - 2, taken - 1), True)


def test_another_port_is_chosen_in_place_of_the_default_and_the_log_says_so(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_ports, "DEFAULT_PORT", taken)
    ports = choose_ports(spec_of(taken, MESHES), 2)
    assert ports is not None
    assert (ports[0] != taken, ports[1]) == (True, taken + 1)
    [remark] = remarks_on(spec_of(taken, MESHES), ports)
    assert f"Port {taken} is used by process {os.getpid()} ({own_name()})" in remark
    assert f"Monarch workers listen on port {ports[0]}." in remark


def test_the_runners_port_is_moved_also_where_the_job_sets_its_own(taken: int) -> None:
    ports = choose_ports(spec_of(taken - 1), 2)
    assert ports is not None
    assert (ports[0], ports[1] != taken) == (taken - 1, True)


def test_who_uses_the_port_that_a_job_sets_is_named_without_arguments(taken: int) -> None:
    with pytest.raises(BackendError) as caught:
        choose_ports(spec_of(taken, MESHES), 2)
    process = f"process {os.getpid()} ({own_name()})"
    assert caught.value.message == (
        f"Port {taken}, which portal.port sets, is used by {process} on every address of this "
        "machine."
    )
    assert "portal.port" in caught.value.data["hint"]
