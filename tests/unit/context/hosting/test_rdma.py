"""The network with which a host reads the memory of others; Monarch is a stand-in."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace

import pytest

from monarch_client.context import JobContext
from monarch_client.context.hosting import rdma
from monarch_client.context.hosting.rdma import remote_memory

ACTOR: ContextVar[str] = ContextVar("ACTOR")
made: list[str] = []


class Buffer:
    """Monarch's RDMABuffer, which belongs to an actor."""

    def __init__(self, memory: memoryview) -> None:
        made.append(ACTOR.get())

    def drop(self) -> Buffer:
        return self

    def get(self, timeout: float) -> None:
        made.append("dropped")


@pytest.fixture
def use_monarch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    made.clear()

    def use(backend: str, buffer_type: Callable[[memoryview], object] = Buffer) -> None:
        module = SimpleNamespace(get_rdma_backend=lambda: backend, RDMABuffer=buffer_type)
        monkeypatch.setitem(sys.modules, "monarch", SimpleNamespace(rdma=module))

    return use


@pytest.mark.parametrize(
    ("transport", "backend", "has_memory"),
    [
        ("auto", "ibverbs", True),
        ("auto", "tcp", False),
        ("auto", "none", False),
        ("rdma", "ibverbs", True),
        ("rdma", "tcp", True),
        ("rdma", "none", False),
        ("tcp", "ibverbs", False),
    ],
)
def test_rdma_is_used_where_there_is_ibverbs_unless_a_transport_is_chosen(
    use_monarch: Callable[..., None], transport: str, backend: str, has_memory: bool
) -> None:
    use_monarch(backend)
    ACTOR.set("agent")
    assert (remote_memory(transport) is not None) == has_memory


def test_buffers_that_threads_make_belong_to_the_actor(use_monarch: Callable[..., None]) -> None:
    use_monarch("ibverbs")
    ACTOR.set("agent")
    memory = remote_memory("auto")
    assert memory is not None and made == ["agent", "dropped"]
    made.clear()
    thread = threading.Thread(target=lambda: memory.offer(memoryview(bytes(8))).withdraw())
    thread.start()
    thread.join()
    assert made == ["agent", "dropped"]


def test_a_host_whose_rdma_does_not_start_has_none(
    use_monarch: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(memory: memoryview) -> object:
        raise RuntimeError("cannot register memory")

    use_monarch("ibverbs", fail)
    assert remote_memory("auto") is None
    never = threading.Event()
    use_monarch("ibverbs", lambda _: never.wait(30))
    monkeypatch.setattr(rdma, "_START_S", 0.05)
    assert remote_memory("auto") is None
    never.set()


def test_a_transport_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="one of 'auto', 'tcp', 'rdma', and not 'ib'"):
        JobContext(object_transport="ib")
