"""The driver's side of a host of a mesh."""

from __future__ import annotations

from unittest.mock import Mock

from monarch_client.context.hosting import batches
from monarch_client.context.hosting.remote_hosts import RemoteHost


def test_a_host_that_was_declared_lost_is_not_obeyed_when_it_comes_back() -> None:
    host = RemoteHost(Mock(), Mock(), Mock())
    host.events, host.router = Mock(), Mock()
    reports = [(kind, 1, b"0") for kind in range(batches.PART + 1)]
    host.is_lost = True
    host.handle(reports)
    assert not host.events.method_calls and not host.router.method_calls and not host.is_closed
    host.is_lost = False
    host.handle(reports)
    assert len(host.events.method_calls) == 4 and len(host.router.method_calls) == 2
