"""Django's PostgreSQL backend, which never hands out a pooled connection that has ended.

A restart of PostgreSQL ends every connection in the pool. Handed out, each would fail a request;
the pool's own check, which Django can switch on, rests longer after each one that it finds.
"""

from __future__ import annotations

import select
from typing import Any

import psycopg
from django.db.backends.postgresql import base

from monarch_portal.database_settings import AWAY


class DatabaseWrapper(base.DatabaseWrapper):
    """The database backend that `ENGINE` names."""

    def get_new_connection(self, conn_params: Any) -> Any:
        """Return a live connection, as far as can be known without a query."""
        if self.pool and AWAY.is_set():
            # Refused at once where the pool's queue would last for its whole time-out.
            self.Database.connect(**conn_params).close()
            AWAY.clear()
        connection = super().get_new_connection(conn_params)
        for _ in range(self.pool.max_size if self.pool else 0):
            if not has_ended(connection):
                break
            # The others have ended for the same reason: all are looked at, once.
            connection.close()
            self.pool.putconn(connection)
            self.pool.check()
            connection = super().get_new_connection(conn_params)
        return connection


def has_ended(connection: psycopg.Connection) -> bool:
    """Whether the server has hung up: input on an idle connection means that it has."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
