"""Values as bytes, with the memory of arrays outside of the pickle."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from monarch_client.context.objects import Serialized, deserialize_object, serialize
from monarch_client.context.objects.serialization import read_layout
from tests.each_case import check_each


@dataclass
class Batch:
    """A class of the user's."""

    name: str
    rows: Any


def round_trip(value: object) -> Any:
    return deserialize_object(memoryview(serialize(value).to_bytes()))


def test_values_come_back_equal() -> None:
    check_each(
        [None, 42, "text", b"\x00" * 100_000, bytearray(10), {"a": [1, (2, {3})]}, 2**200],
        lambda value: _assert_equal(round_trip(value), value),
    )
    arrays = [
        np.arange(10_000),
        np.zeros((0, 3)),
        np.ones(3)[None, :],
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(100)[::7],
        np.array(["a", None], dtype=object),
        np.array(5),
    ]
    check_each(arrays, lambda value: np.testing.assert_array_equal(round_trip([value])[0], value))
    batch = round_trip(Batch("x", np.arange(5)))
    assert batch.name == "x" and batch.rows.tolist() == [0, 1, 2, 3, 4]


def _assert_equal(got: object, value: object) -> None:
    assert got == value and type(got) is type(value)


def test_functions_that_no_module_has_come_back() -> None:
    factor = 3
    assert round_trip(lambda x: x * factor)(14) == 42


def test_the_memory_of_arrays_is_not_in_the_pickle_and_shared_memory_once() -> None:
    rows = np.arange(100_000)
    serialized = serialize({"a": rows, "b": rows})
    assert len(serialized.head) < 1000
    assert [buffer.nbytes for buffer in serialized.buffers] == [rows.nbytes]
    assert np.shares_memory(np.frombuffer(serialized.buffers[0], rows.dtype), rows)


def test_buffers_are_aligned_and_inside_the_object() -> None:
    serialized = serialize([np.arange(n, dtype=np.uint8) for n in (1, 63, 64, 65, 1000)])
    whole = memoryview(serialized.to_bytes())
    _, entries = read_layout(whole)
    assert [entry.offset % 64 for entry in entries] == [0] * 5
    assert entries[-1].offset + entries[-1].length == serialized.size == whole.nbytes


def test_arrays_that_were_read_are_read_only() -> None:
    read = round_trip({"large": np.arange(100_000), "small": np.arange(3)})
    for rows in read.values():
        with pytest.raises(ValueError, match="read-only"):
            rows[0] = 1
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            rows.flags.writeable = True


def test_a_buffer_of_a_tensor_is_private_memory_of_its_reader() -> None:
    parts = [memoryview(bytearray(b"array")), memoryview(bytearray(b"tensor"))]
    whole = memoryview(Serialized(b"", parts, frozenset({1})).to_bytes())
    _, (array, tensor) = read_layout(whole)
    assert (array.is_writable, tensor.is_writable) == (False, True)
    assert bytes(whole[tensor.offset :][: tensor.length]) == b"tensor"


def test_pickling_keeps_nothing_of_the_value_until_garbage_is_collected() -> None:
    rows = np.arange(10)
    alive = weakref.ref(rows)
    gc.disable()
    try:
        serialize({"rows": rows})
        del rows
        assert alive() is None
    finally:
        gc.enable()
