"""The calls that can compute lost objects again: what is kept, and how much of it."""

from __future__ import annotations

from monarch_client.context.driver.lineage import Lineage, Recipe
from monarch_client.context.values import VALUE, Payload
from monarch_client.context.wire import Call


def recipe(number: int, *needs: int, code: bytes = b"") -> Recipe:
    call = Call(ref(number), "f", b"", code, Payload(VALUE, b""), needs=[ref(n) for n in needs])
    return Recipe(call, object_of(number), 0, {})


def ref(number: int) -> bytes:
    return b"ref %d" % number


def object_of(number: int) -> bytes:
    return b"object %d" % number


def test_a_recipe_is_kept_while_its_object_or_one_made_of_it_exists() -> None:
    lineage = Lineage()
    for number in range(3):
        lineage.add(recipe(number, *range(number)))
    lineage.drop(ref(0), object_of(0))
    lineage.drop(ref(1), object_of(1))
    assert lineage.find(ref(0)) and lineage.find(ref(1))
    lineage.drop(ref(2), object_of(2))
    assert len(lineage) == 0
    assert lineage.__dict__ == Lineage().__dict__


def test_a_second_object_of_a_reference_replaces_the_first() -> None:
    lineage = Lineage()
    lineage.add(recipe(0))
    lineage.add(recipe(1, 0))
    lineage.drop(ref(0), object_of(0))
    again = recipe(1, 0)
    again.object_id = b"second"
    lineage.add(again)
    lineage.drop(ref(1), object_of(1))
    assert lineage.find(ref(1)) is again and lineage.find(ref(0))
    lineage.drop(ref(1), b"second")
    assert lineage.__dict__ == Lineage().__dict__


def test_chains_of_any_length_take_limited_memory_and_are_forgotten_at_once() -> None:
    lineage = Lineage(most_bytes=1_000_000)
    lineage.add(recipe(0, code=b"x" * 400))
    for number in range(1, 20_000):
        lineage.add(recipe(number, number - 1, code=b"x" * 400))
        lineage.drop(ref(number - 1), object_of(number - 1))
    assert 500 < len(lineage) < 1000
    assert lineage.find(ref(19_999)) and not lineage.find(ref(0))
    lineage.drop(ref(19_999), object_of(19_999))
    assert lineage.__dict__ == Lineage(most_bytes=1_000_000).__dict__
