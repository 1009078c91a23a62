"""Errors of a connection that is taken for its meshes."""

from __future__ import annotations

import copy

import pytest

from monarch_client.gateway.connecting import Connection
from monarch_client.gateway.proxy_connection import ProxyConnection


@pytest.mark.parametrize("kind", [Connection, ProxyConnection])
def test_a_mesh_that_is_looked_for_in_a_connection_is_pointed_to(kind: type[Connection]) -> None:
    connection = kind.__new__(kind)
    with pytest.raises(AttributeError, match=r"with connect\(...\) as meshes") as raised:
        _ = connection.trainers
    assert ".meshes.trainers" in str(raised.value)
    assert not hasattr(connection, "_private")
    copy.copy(connection)
