"""The connections of tasks: whose requests are handled."""

from __future__ import annotations

from unittest.mock import Mock

from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.task_connections import TaskConnections
from monarch_client.context.values import VALUE, Payload
from monarch_client.context.wire import Hello, Put, frame

PUT = frame(Put(b"ref", Payload(VALUE, b"x")))


def test_a_connection_that_does_not_begin_with_its_executor_is_closed() -> None:
    link, requests = Mock(), Mock()
    connections = TaskConnections(link, ObjectTable(Mock()), requests)
    connections.on_request(1, PUT)
    link.disconnect.assert_called_once_with(1)
    requests.put.assert_not_called()
    connections.on_request(2, frame(Hello(7)) + PUT)
    requests.find_executor.assert_called_once_with(7)
    requests.put.assert_called_once()
