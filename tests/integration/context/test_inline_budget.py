"""The limit of what a driver keeps in its own memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from monarch_client.context import JobContext
from monarch_client.context.errors import TaskError
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S4.6")
LIMIT, SIZE, MANY = 1_000_000, 50_000, 100
# Of calls that have begun before the limit was reached.
AT_ONCE = 20 * SIZE


@pytest.fixture(scope="module")
def context() -> Iterator[JobContext]:
    with JobContext(resources={"CPU": 1}, inline_bytes=LIMIT) as made:
        yield made


def inline(context: JobContext) -> int:
    return context._driver.objects.inline.used


def stored(context: JobContext) -> int:
    return context._driver.stored.store.usage().objects


def is_empty(context: JobContext) -> bool:
    context._driver.loop.wake()
    return inline(context) == 0 and stored(context) == 0


def test_results_beyond_the_limit_are_in_the_store(context: JobContext) -> None:
    refs = [context.create_task(lambda n=n: bytes([n]) * SIZE) for n in range(MANY)]
    context.wait(refs, num_returns=MANY)
    assert inline(context) <= LIMIT + AT_ONCE
    assert stored(context) >= MANY - (LIMIT + AT_ONCE) / SIZE
    assert context.get(refs) == [bytes([n]) * SIZE for n in range(MANY)]
    small = context.create_task(bytes, (500,))
    context.get(small)
    assert inline(context) <= LIMIT + AT_ONCE
    del refs
    assert eventually(lambda: is_empty(context))


def test_arguments_and_values_beyond_the_limit_are_in_the_store(
    context: JobContext, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    context.create_task(gate.read_text)
    refs = [context.create_task(len, (bytes(SIZE),)) for _ in range(MANY)]
    kept = [context.put(bytes(SIZE)) for _ in range(MANY)]
    assert inline(context) <= LIMIT + SIZE + 100
    gate.write_text("")
    assert context.get(refs) == [SIZE] * MANY
    assert len(context.get(kept)) == MANY
    del refs, kept
    assert eventually(lambda: is_empty(context))


def test_a_task_obeys_the_limit_of_its_driver(context: JobContext) -> None:
    def work(context):
        refs = [context.put(bytes(SIZE)) for _ in range(MANY)]
        return len(context.get(refs)), refs

    count, refs = context.get(context.create_task(work, (context,)))
    assert count == len(refs) == MANY
    assert inline(context) <= LIMIT + 2 * SIZE
    del refs
    assert eventually(lambda: is_empty(context))


def test_large_functions_are_one_object_for_all_their_calls(context: JobContext) -> None:
    def call(context, values):
        large = bytes(2 * SIZE)
        return context.get([context.create_task(lambda n: n + len(large), (n,)) for n in values])

    class Large:
        large = bytes(2 * SIZE)

        def size(self):
            return len(self.large)

    assert call(context, range(10)) == [2 * SIZE + n for n in range(10)]
    assert eventually(lambda: stored(context) == 1)
    assert context.get(context.create_task(call, (context, [1]))) == [2 * SIZE + 1]
    assert context.get(context.create_actor(Large).size()) == 2 * SIZE
    assert inline(context) == 0


def test_an_impossible_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="inline_bytes cannot be negative"):
        JobContext(inline_bytes=-1)


@pytest.mark.slow
def test_of_a_large_error_the_text_is_kept(context: JobContext) -> None:
    def fail():
        raise LookupError("begins", bytes(2_000_000), "ends")

    ref = context.create_task(fail)
    with pytest.raises(TaskError, match=r"(?s)LookupError: \('begins'.*left out.*'ends'\)$"):
        context.get(ref)
    assert inline(context) < 500_000
    del ref
    assert eventually(lambda: inline(context) == 0)
