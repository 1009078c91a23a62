"""Messages are kept until they are acknowledged, or expire."""

from __future__ import annotations

from monarch_client.runner.scripts.mportal_proxies.outbox import Outbox


def outbox_of(*payloads: bytes, substitute: bytes | None = b"x") -> Outbox:
    """Return an outbox with a message for each second."""
    outbox = Outbox()
    for second, payload in enumerate(payloads):
        outbox.add(payload, float(second), substitute)
    return outbox


def test_what_is_acknowledged_is_dropped_and_the_rest_kept_in_order() -> None:
    outbox = outbox_of(b"one", b"two", b"three")
    outbox.acknowledge(1)
    assert list(outbox) == [(2, b"two"), (3, b"three")]
    assert outbox.size == 8
    outbox.acknowledge(1)
    assert outbox.size == 8


def test_old_messages_expire_and_keep_their_numbers() -> None:
    outbox = outbox_of(b"one", b"two", b"three")
    assert outbox.expire(11.5, keep_s=10) == 2
    assert list(outbox) == [(1, b"x"), (2, b"x"), (3, b"three")]
    assert outbox.size == 7
    assert outbox.expire(11.5, keep_s=10) == 0


def test_the_oldest_expire_where_there_are_too_many_bytes() -> None:
    outbox = outbox_of(b"a" * 50, b"b" * 50, b"c" * 50)
    assert outbox.expire(0, keep_bytes=110) == 1
    assert [payload[:1] for _, payload in outbox] == [b"x", b"b", b"c"]


def test_one_large_message_is_kept() -> None:
    outbox = outbox_of(b"a" * 50, b"b" * 500)
    assert outbox.expire(0, keep_bytes=100) == 1
    assert list(outbox) == [(1, b"x"), (2, b"b" * 500)]


def test_messages_without_a_substitute_do_not_expire() -> None:
    outbox = outbox_of(b"request", substitute=None)
    assert outbox.expire(9999) == 0
    assert list(outbox) == [(1, b"request")]
