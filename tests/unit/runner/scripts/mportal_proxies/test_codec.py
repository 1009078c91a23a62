"""The codec of mesh proxies: values come back as they were, and bytes never execute anything."""

from __future__ import annotations

import json
import math
import pickle
import re
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, Flag, IntFlag
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch_client.runner.scripts.mportal_proxies import codec as codec_module
from monarch_client.runner.scripts.mportal_proxies.arrays import RawArray
from monarch_client.runner.scripts.mportal_proxies.classes import Record, find_imported
from monarch_client.runner.scripts.mportal_proxies.codec import Codec, CodecError, outline
from tests.each_case import check_each

CODEC = Codec(find_imported)
UNKNOWING = Codec(lambda _name: None)

executed: list[str] = []


@dataclass(frozen=True)
class Step:
    """A dataclass whose constructor has an effect that decoding must not have."""

    number: int
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        executed.append("post_init")


class Pair(NamedTuple):
    left: Any
    right: Any


class Color(Enum):
    RED = "red"


class Access(Flag):
    READ = 1
    WRITE = 2
    BOTH = 3

    @classmethod
    def _missing_(cls, value: object) -> Any:
        executed.append("missing")
        return super()._missing_(value)


class Mode(IntFlag):
    A = 1
    B = 4


def record(what: str) -> None:
    executed.append(what)


class Opaque:
    """Not data."""

    def __reduce__(self) -> tuple[Any, ...]:
        return record, ("pickled",)


def message_of(tree: Any, *buffers: bytes, lengths: Any = None) -> bytes:
    """Return a message with any tree, as a hostile sender would write it."""
    given_lengths = [len(each) for each in buffers] if lengths is None else lengths
    head = json.dumps({"value": tree, "buffers": given_lengths}).encode()
    padded = b"".join(each + bytes(-len(each) % 8) for each in buffers)
    return struct.pack("!I", len(head)) + head + bytes(-(4 + len(head)) % 8) + padded


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(st.characters()),
    st.binary(),
    st.binary().map(bytearray),
    st.sampled_from(Color),
    st.sampled_from([Access(0), *Access, Mode(0), Mode.A, Mode.A | Mode.B, Mode(9)]),
    st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([-2, 1, 3])),
)
keys = st.one_of(st.text(), st.just("$"), st.integers(), st.tuples(st.integers(), st.text()))


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(keys, inner),
        st.sets(st.integers() | st.text()),
        st.frozensets(st.integers() | st.text()),
        st.lists(st.tuples(keys, inner)).map(OrderedDict),
        st.dictionaries(keys, inner).map(lambda items: defaultdict(list, items)),
        st.dictionaries(keys, st.integers()).map(Counter),
        st.builds(deque, st.lists(inner), st.none() | st.integers(0, 9)),
        st.builds(Pair, inner, inner),
        st.builds(Step, st.integers(), st.lists(st.floats(allow_nan=False))),
    )


values = st.recursive(scalars, containers, max_leaves=20)
dtypes = st.sampled_from(["?", "<i1", "<u2", ">i4", "<i8", "<f2", "<f4", "<f8", "<c16", "<U3"])


@given(values)
def test_each_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    decoded = CODEC.decode(CODEC.encode(value))
    assert decoded == value
    assert type(decoded) is type(value)


@given(dtypes, st.lists(st.integers(0, 4), max_size=4))
def test_each_array_comes_back_with_its_dtype_and_shape(dtype: str, shape: list[int]) -> None:
    count = math.prod(shape)
    array = np.arange(count).astype(dtype).reshape(shape)
    decoded = CODEC.decode(CODEC.encode({"weights": [array]}))["weights"][0]
    assert (decoded.dtype, decoded.shape) == (array.dtype, array.shape)
    assert (decoded == array).all()


def test_an_array_from_a_socket_can_be_written_to() -> None:
    decoded = CODEC.decode(bytearray(CODEC.encode(np.zeros((2, 3))[:, ::2])))
    decoded += 1
    assert decoded.tolist() == [[1, 1], [1, 1]]


def test_a_scalar_of_numpy_stays_one() -> None:
    decoded = CODEC.decode(CODEC.encode(np.float32(1.5)))
    assert (type(decoded), decoded) == (np.float32, 1.5)


def test_nan_and_infinity_come_back() -> None:
    decoded = CODEC.decode(CODEC.encode([math.nan, math.inf, -math.inf]))
    assert math.isnan(decoded[0])
    assert decoded[1:] == [math.inf, -math.inf]


def test_decoding_a_dataclass_runs_no_constructor() -> None:
    encoded = CODEC.encode(Step(1))
    executed.clear()
    assert CODEC.decode(encoded).number == 1
    assert executed == []


def test_decoding_flags_runs_no_code_of_their_class() -> None:
    encoded = CODEC.encode([Access.READ, Access(0)])
    del Access._value2member_map_[0]  # as in a process that has not met it
    executed.clear()
    assert CODEC.decode(encoded) == [Access.READ, Access(0)]
    assert executed == []


def test_a_flag_with_a_name_is_sent_as_a_member_which_older_peers_know() -> None:
    def sent(value: Flag) -> tuple[str, object]:
        tree = json.loads(CODEC.encode(value)[4:].rstrip(b"\0"))["value"]
        return tree["$"], tree["v"]

    assert [sent(each) for each in (Access.READ, Access.BOTH, re.IGNORECASE, Mode.A)] == [
        ("enum", "READ"),
        ("enum", "BOTH"),
        ("enum", "IGNORECASE"),
        ("enum", "A"),
    ]
    assert [sent(each) for each in (Access(0), Mode.A | Mode.B, re.IGNORECASE | re.MULTILINE)] == [
        ("flag", 0),
        ("flag", 5),
        ("flag", 10),
    ]


def test_what_a_container_has_beside_its_items_comes_back() -> None:
    state = OrderedDict(weight=np.ones(2))
    state._metadata = {"": {"version": 1}}
    decoded = CODEC.decode(CODEC.encode([state, defaultdict(int), deque([1], 3)]))
    assert decoded[0]._metadata == {"": {"version": 1}}
    assert (decoded[1]["none"], decoded[2].maxlen) == (0, 3)


def test_a_message_that_cannot_be_decoded_still_names_its_call() -> None:
    for broken in ({"$": "enum", "type": 1, "v": None}, {"$": "eval"}, {"$": "bytes", "v": 7}):
        message = message_of({"op": "call", "id": 7, "count": 2, "args": [broken]})
        with pytest.raises(CodecError):
            CODEC.decode(message)
        assert outline(message) == {"op": "call", "id": 7, "count": 2}
    assert outline(b"") == outline(message_of([1])) == {}


def test_a_class_that_is_not_imported_here_becomes_a_record() -> None:
    decoded = UNKNOWING.decode(CODEC.encode(Step(7, [0.5])))
    assert isinstance(decoded, Record)
    assert (decoded.type_name, decoded.number, decoded.losses) == (f"{__name__}:Step", 7, [0.5])
    with pytest.raises(AttributeError):
        decoded.gradient  # noqa: B018


def test_decoding_imports_no_module() -> None:
    assert "turtledemo" not in sys.modules
    tree = {"$": "data", "type": "turtledemo:Turtle", "v": {}}
    assert isinstance(CODEC.decode(message_of(tree)), Record)
    assert "turtledemo" not in sys.modules


def test_a_refusal_names_the_path_of_the_value() -> None:
    cases = [
        (Opaque(), "the value is a "),
        ({"args": [1, {"weights": (2, Opaque())}]}, "args[1]['weights'][1] is a "),
        ({"step": Step(1, Opaque())}, "step.losses is a "),
        ({"kwargs": {"fn": print}}, "kwargs['fn'] is a builtin_function_or_method"),
        ({"x": np.array([object()])}, "x is a numpy.ndarray"),
        ({"x": True, "y": type}, "y is a type"),
        ({"x": defaultdict(Opaque)}, "x is a collections.defaultdict, which is not data (its "),
    ]

    def check(value: Any, text: str) -> None:
        with pytest.raises(CodecError) as caught:
            CODEC.encode(value)
        assert str(caught.value).startswith(text)

    check_each(cases, check)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(CodecError, match="contains itself"):
        CODEC.encode(loop)


def test_a_pickle_is_loaded_only_where_it_was_requested() -> None:
    sender = Codec(find_imported, pickle=pickle.dumps)
    encoded = sender.encode([1, Opaque()])
    executed.clear()
    with pytest.raises(CodecError, match="has not requested"):
        CODEC.decode(encoded)
    assert executed == []
    assert Codec(find_imported, unpickle=pickle.loads).decode(encoded) == [1, None]
    assert executed == ["pickled"]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused(hostile: bytes) -> None:
    with suppress(CodecError):
        CODEC.decode(hostile)


TAGS = ["tuple", "set", "dict", "int", "array", "data", "named", "enum", "slice", "bytes"]
TAGS += ["flag", "ordered", "defaults", "counter", "deque"]
json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["$", "v", "type", "of", "dtype", "shape", "b", "with"])
            | st.text(max_size=3),
            inner | st.sampled_from([*TAGS, "numpy", "torch", "<f8", "O", f"{__name__}:Step"]),
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(json_trees, st.binary(max_size=16))
def test_any_tree_is_a_value_or_refused(tree: Any, buffer: bytes) -> None:
    executed.clear()
    with suppress(CodecError):
        CODEC.decode(message_of(tree, buffer))
    assert executed == []


@given(dtypes | st.sampled_from(["|b1", "<U1", ">U2", "|S3", "<m8[s]"]), st.binary(max_size=48))
def test_any_bytes_are_an_array_whose_items_can_be_read_or_refused(dtype: str, data: bytes) -> None:
    size = len(data) // np.dtype(dtype).itemsize
    kept = data[: size * np.dtype(dtype).itemsize]
    tree = {"$": "array", "of": "numpy", "dtype": dtype, "shape": [size], "b": 0}
    with suppress(CodecError):
        CODEC.decode(message_of(tree, kept)).tolist()


BEYOND_UNICODE = b"\xff\xff\xff\x7f"


def test_hostile_trees_are_refused() -> None:
    cases: list[tuple[Any, ...]] = [
        ({"$": "array", "of": "numpy", "dtype": "|O", "shape": [1], "b": 0}, bytes(8)),
        ({"$": "array", "of": "numpy", "dtype": "<f8,<O", "shape": [1], "b": 0}, bytes(16)),
        ({"$": "array", "of": "numpy", "dtype": "<f8", "shape": [2], "b": 0}, bytes(8)),
        ({"$": "array", "of": "numpy", "dtype": "<f8", "shape": [-1, -1], "b": 0}, bytes(8)),
        ({"$": "array", "of": "numpy", "dtype": "<f8", "shape": [0, 1 << 70], "b": 0}, b""),
        ({"$": "array", "of": "torch", "dtype": "Tensor", "shape": [1], "b": 0}, bytes(8)),
        ({"$": "array", "of": "numpy", "dtype": "<U1", "shape": [1], "b": 0}, BEYOND_UNICODE),
        (
            {"$": "array", "of": "numpy.generic", "dtype": "<U1", "shape": [], "b": 0},
            BEYOND_UNICODE,
        ),
        ({"$": "bytes", "v": 1}, bytes(8)),
        ({"$": "bytes", "v": -1}, bytes(8)),
        ({"$": "pickle", "v": 0}, pickle.dumps(1)),
        ({"$": "mesh", "v": 1},),
        ({"$": "data", "type": "builtins:list", "v": {}},),
        ({"$": "data", "type": "subprocess:Popen", "v": {"args": "ls"}},),
        ({"$": "data", "type": f"{__name__}:Step", "v": {"number": 1}},),
        ({"$": "named", "type": "builtins:tuple", "v": [1]},),
        ({"$": "enum", "type": f"{__name__}:Color", "v": "BLUE"},),
        ({"$": "flag", "type": f"{__name__}:Access", "v": 4},),
        ({"$": "flag", "type": f"{__name__}:Color", "v": 1},),
        ({"$": "ordered", "v": [[1, 2, 3]], "with": {}},),
        ({"$": "ordered", "v": [], "with": 5},),
        ({"$": "defaults", "v": [], "with": "eval"},),
        ({"$": "deque", "v": [], "with": "2"},),
        ({"$": "counter", "v": 3, "with": None},),
        ({"$": "set", "v": [[1]]},),
        ({"$": "int", "v": 5},),
        ({"$": ["list"], "v": 5},),
        ({"$": "eval", "v": "1"},),
    ]

    def check(tree: Any, *buffers: bytes) -> None:
        with pytest.raises(CodecError):
            CODEC.decode(message_of(tree, *buffers))

    check_each(cases, check)


def test_a_tree_that_is_too_deep_is_refused() -> None:
    text = '{"value":' + "[" * 50_000 + "]" * 50_000 + ',"buffers":[]}'
    message = struct.pack("!I", len(text)) + text.encode()
    with pytest.raises(CodecError):
        CODEC.decode(message + bytes(-len(message) % 8))


def test_buffers_that_do_not_fill_the_message_are_refused() -> None:
    for lengths in ([4], [1 << 40], [-8, 16], [True], "8", {"0": 8}):
        with pytest.raises(CodecError):
            CODEC.decode(message_of(1, bytes(8), lengths=lengths) + bytes(8))


def test_sizes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    big = CODEC.encode(bytes(2000))
    monkeypatch.setattr(codec_module, "MESSAGE_LIMIT", 1000)
    monkeypatch.setattr(codec_module, "HEAD_LIMIT", 200)
    for value in (bytes(2000), list(range(200))):
        with pytest.raises(CodecError, match="more than"):
            CODEC.encode(value)
    for message in (big, message_of(list(range(200)))):
        with pytest.raises(CodecError, match="malformed"):
            CODEC.decode(message)


def test_a_tensor_without_torch_is_an_array_or_raw() -> None:
    tree = {"$": "array", "of": "torch", "dtype": "float32", "shape": [1], "b": 0}
    assert CODEC.decode(message_of(tree, struct.pack("<f", 2.5))).tolist() == [2.5]
    brain = message_of({**tree, "dtype": "bfloat16"}, b"\x80\x3f")
    assert CODEC.decode(brain) == RawArray("torch", "bfloat16", (1,), b"\x80\x3f")


def test_a_message_yields_no_more_than_its_bytes() -> None:
    empty = {"$": "array", "of": "numpy", "dtype": "|S0", "shape": [1 << 40], "b": 0}
    with pytest.raises(CodecError, match="no bytes"):
        CODEC.decode(message_of(empty, b""))
    with pytest.raises(CodecError, match="buffer 0 is used twice"):
        CODEC.decode(message_of([{"$": "bytes", "v": 0}] * 2, bytes(8)))


def test_a_message_that_exceeds_the_memory_is_refused() -> None:
    def exhaust(_name: str) -> None:
        raise MemoryError

    with pytest.raises(CodecError, match="MemoryError"):
        Codec(exhaust).decode(message_of({"$": "data", "type": "m:C", "v": {}}))
