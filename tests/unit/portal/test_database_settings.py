"""The settings of connections to PostgreSQL at their beginning."""

from __future__ import annotations

from monarch_portal.database_settings import connection_options, pool_options
from monarch_portal.env import database_from_url


def test_both_sides_notice_a_host_that_vanished_within_fifteen_seconds() -> None:
    options = connection_options({})
    sides = (
        options,
        dict(word.split("=") for word in options["options"].split(" ") if "=" in word),
    )
    for side, prefix in zip(sides, ("", "tcp_"), strict=True):
        idle, interval, count = (
            int(side[f"{prefix}keepalives_{what}"]) for what in ("idle", "interval", "count")
        )
        assert idle + interval * count <= 15
        assert int(side["tcp_user_timeout"]) <= 15_000


def test_what_the_url_says_goes_before_what_the_portal_says() -> None:
    url = "postgresql://a:b@c/d?sslmode=require&connect_timeout=9&options=-c%20lock_timeout%3D1"
    options = connection_options(database_from_url(url)["OPTIONS"])
    assert options["sslmode"] == "require"
    assert options["connect_timeout"] == "9"
    assert options["options"].endswith("-c lock_timeout=1")
    assert "-c idle_in_transaction_session_timeout=6000" in options["options"]


def test_a_pool_asks_a_database_that_came_back_within_seconds() -> None:
    assert pool_options(7)["max_size"] == 7
    assert pool_options(7)["reconnect_timeout"] <= 3
