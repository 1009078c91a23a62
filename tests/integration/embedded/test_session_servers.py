"""Servers that every other integration test uses."""

from __future__ import annotations

import pytest
from django.db import connection


@pytest.mark.django_db
def test_the_database_is_the_embedded_postgresql_with_the_tables_in_it():
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        assert cursor.fetchone()[0].startswith("18")
    assert "jobs_job" in connection.introspection.table_names()


def test_redis_answers_on_its_own_socket(redis_client):
    assert redis_client.set("a", "b")
    assert redis_client.get("a") == b"b"
