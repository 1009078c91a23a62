"""Messages are kept until they are acknowledged, or expire."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from monarch_client.runner.scripts.mportal_proxies import outbox as outbox_module
from monarch_client.runner.scripts.mportal_proxies import spill as spill_module
from monarch_client.runner.scripts.mportal_proxies.outbox import Outbox
from monarch_client.runner.scripts.mportal_proxies.spill import Spill


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


def test_what_memory_does_not_keep_is_on_disk_until_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "MEMORY_BYTES", 4000)
    monkeypatch.setattr(spill_module, "_FILE_BYTES", 4000)
    files = open_files()
    outbox = Outbox(Spill(str(tmp_path)))
    payloads = [bytes([number]) * 2000 for number in range(10)]
    for payload in payloads:
        outbox.add(payload, 0.0)
    assert [payload for _, payload in outbox] == payloads
    assert outbox.after(7) == payloads[7]
    assert len(open_files() - files) == 4
    assert not list(tmp_path.iterdir())
    outbox.acknowledge(6)
    assert len(open_files() - files) == 2
    outbox.acknowledge(10)
    assert outbox.size == 0
    assert outbox.after(10) is None


def test_what_neither_memory_nor_disk_keeps_expires_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "MEMORY_BYTES", 2000)
    monkeypatch.setattr(outbox_module, "MOST_BYTES", 5000)
    outbox = Outbox(Spill(str(tmp_path)))
    full = Outbox(Spill(str(tmp_path / "missing")))
    for number in range(3):
        outbox.add(bytes([number]) * 2000, 0.0, b"x")
        full.add(bytes([number]) * 2000, 0.0, b"x")
    assert [payload[:1] for _, payload in outbox] == [b"\0", b"\1", b"x"]
    assert [payload[:1] for _, payload in full] == [b"\0", b"x", b"x"]


def test_many_small_messages_fill_an_outbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "KEEP_BYTES", 100_000)
    outbox = outbox_of(*[b"x"] * 90)
    assert not outbox.is_full
    for _ in range(10):
        outbox.add(b"x", 0.0)
    assert outbox.is_full


def open_files() -> set[str]:
    """Return the numbers of the files that this process has open without a name."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the listing itself
            if "(deleted)" in str(each.readlink()):
                found.add(each.name)
    return found
