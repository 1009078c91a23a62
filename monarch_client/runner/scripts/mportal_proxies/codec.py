"""A codec for data only: values become a JSON head and raw buffers, and back. Nothing is executed.

Numbers, text, bytes, containers of Python and `collections`, dataclasses, named tuples,
enumerations, slices, and arrays of NumPy and torch. A value that does not fit is refused with its
path. Pickle is used only by a codec that was made with it.

    4 bytes: length of the head | head | buffers, each padded to 8 bytes

The head is `{"value": ..., "buffers": [lengths]}`. What JSON lacks is an object with the key "$".
"""

from __future__ import annotations

import dataclasses
import enum
import json
import struct
from collections.abc import Hashable
from typing import TYPE_CHECKING

from . import arrays, classes, containers

if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Union

    Buffer = Union[bytes, bytearray, memoryview]

MESSAGE_LIMIT = 1 << 30
# Head: what is not in buffers. A list of numbers of this size should be an array.
HEAD_LIMIT = 64 << 20
DEPTH_LIMIT = 100
_LENGTH = struct.Struct("!I")
_PADDING = 8
_SAFE_INTEGER = 1 << 63


class CodecError(ValueError):
    """A value that cannot be sent, or a message that is no value."""


class Codec:
    """An encoder and decoder of values.

    `find_class` returns the class of a name, or None. `reference` returns the id of an object that
    is sent as a reference, and `resolve` the object of an id. `pickle` and `unpickle` are for
    values that are not data.
    """

    def __init__(
        self,
        find_class: Callable[[str], type | None],
        *,
        reference: Callable[[Any], int | None] = lambda _value: None,
        resolve: Callable[[int], Any] | None = None,
        pickle: Callable[[Any], bytes] | None = None,
        unpickle: Callable[[bytes], Any] | None = None,
        may_import_torch: bool = False,
    ) -> None:
        self.find_class = find_class
        self.reference = reference
        self.resolve = resolve
        self.pickle = pickle
        self.unpickle = unpickle
        self.may_import_torch = may_import_torch

    def encode(self, value: Any) -> bytes:
        """Return the value as a message. CodecError: it, or a part of it, is not data."""
        encoder = _Encoder(self)
        tree = encoder.encode(value, "", 0)
        head = {"value": tree, "buffers": [len(buffer) for buffer in encoder.buffers]}
        text = json.dumps(head, separators=(",", ":")).encode()
        parts: list[Buffer] = [_LENGTH.pack(len(text)), text]
        if len(text) > HEAD_LIMIT:
            raise CodecError(f"the value has more than {HEAD_LIMIT >> 20} MiB outside of arrays")
        parts.append(bytes(-(_LENGTH.size + len(text)) % _PADDING))
        for buffer in encoder.buffers:
            parts += [buffer, bytes(-len(buffer) % _PADDING)]
        message = b"".join(parts)
        if len(message) > MESSAGE_LIMIT:
            raise CodecError(f"the value has more than {MESSAGE_LIMIT >> 20} MiB")
        return message

    def decode(self, message: Buffer) -> Any:
        """Return the value of a message. CodecError: it is not one of this codec."""
        view = memoryview(message)
        try:
            tree, buffers = _split(view)
            return _Decoder(self, buffers).decode(tree)
        except CodecError:
            raise
        except (
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            OverflowError,
            MemoryError,
            ImportError,
            RuntimeError,
        ) as error:
            raise CodecError(f"the message is malformed: {error!r}") from error


def outline(message: Buffer) -> dict[str, Any]:
    """Return the numbers and texts among the fields of a message that cannot be decoded.

    Whatever the others are, they say which call it is, so that it can be answered.
    """
    try:
        head, _ = _head_of(memoryview(message))
        fields = head["value"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
    is_plain = type(fields) is dict and "$" not in fields
    kept = fields.items() if is_plain else ()
    return {key: value for key, value in kept if type(value) in (int, str)}


def _head_of(view: memoryview) -> tuple[Any, int]:
    """Return the head, and where it ends."""
    if len(view) < _LENGTH.size or len(view) > MESSAGE_LIMIT:
        raise CodecError(f"a message of {len(view)} bytes is malformed")
    (length,) = _LENGTH.unpack_from(view)
    start = _LENGTH.size + length
    if length > HEAD_LIMIT or start > len(view):
        raise CodecError(f"a head of {length} bytes is malformed")
    return json.loads(bytes(view[_LENGTH.size : start])), start


def _split(view: memoryview) -> tuple[Any, list[memoryview]]:
    """Return the tree of the head, and the buffers."""
    head, start = _head_of(view)
    buffers = []
    position = start + -start % _PADDING
    for size in head["buffers"]:
        if type(size) is not int or size < 0 or position + size > len(view):
            raise CodecError("the buffers exceed the message")
        buffers.append(view[position : position + size])
        position += size + -size % _PADDING
    if position != len(view):
        raise CodecError("the buffers do not fill the message")
    return head["value"], buffers


class _Encoder:
    """One encoding: the buffers so far."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.buffers: list[Buffer] = []

    def encode(self, value: Any, path: str, depth: int) -> Any:
        """Return the tree of a value."""
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is float:
            return value
        if kind is int:
            return value if -_SAFE_INTEGER <= value < _SAFE_INTEGER else _tag("int", hex(value))
        if depth > DEPTH_LIMIT:
            raise CodecError(
                f"{path or 'the value'} is nested more than {DEPTH_LIMIT} levels deep, or "
                "contains itself"
            )
        encode = _ENCODERS.get(kind)
        if encode is not None:
            return encode(self, value, path, depth + 1)
        return self._encode_other(value, path, depth + 1)

    def add(self, buffer: Buffer) -> int:
        """Keep a buffer, and return its number."""
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def list_(self, values: Any, path: str, depth: int) -> list[Any]:
        """Return the trees of values."""
        return [self.encode(each, f"{path}[{i}]", depth) for i, each in enumerate(values)]

    def dict_(self, value: dict[Any, Any], path: str, depth: int) -> Any:
        """Return a JSON object if the keys allow one, else a list of pairs."""
        if all(type(key) is str for key in value) and "$" not in value:
            return {
                key: self.encode(each, f"{path}[{key!r}]" if path else key, depth)
                for key, each in value.items()
            }
        return _tag("dict", self.pairs(value, path, depth))

    def pairs(self, value: dict[Any, Any], path: str, depth: int) -> list[Any]:
        """Return the trees of keys and values."""
        return [
            [
                self.encode(key, f"a key of {path or 'the value'}", depth),
                self.encode(each, f"{path}[{key!r}]", depth),
            ]
            for key, each in value.items()
        ]

    def collection(self, value: Any, path: str, depth: int) -> Any:
        """Return the tree of a container of `collections`."""
        try:
            tag, extra = containers.describe(value)
        except ValueError as error:
            return self._pickled(value, path, str(error))
        encode = self.list_ if tag == "deque" else self.pairs
        return {"$": tag, "v": encode(value, path, depth), "with": self.encode(extra, path, depth)}

    def _encode_other(self, value: Any, path: str, depth: int) -> Any:
        number = self._codec.reference(value)
        if number is not None:
            return _tag("mesh", number)
        try:
            array = arrays.describe(value)
        except ValueError as error:
            return self._pickled(value, path, str(error))
        if array is not None:
            library, dtype, shape, data = array
            return {
                "$": "array",
                "of": library,
                "dtype": dtype,
                "shape": shape,
                "b": self.add(data),
            }
        fields = _fields_of(value)
        if fields is None:
            return self._pickled(value, path, "")
        tag, content = fields
        if tag == "named":
            content = self.list_(content, path, depth)
        elif tag == "flag":
            content = self.encode(content, path, depth)
        elif tag == "data":
            content = {key: self.encode(v, f"{path}.{key}", depth) for key, v in content.items()}
        return {"$": tag, "type": classes.name_of(type(value)), "v": content}

    def _pickled(self, value: Any, path: str, reason: str) -> Any:
        if self._codec.pickle is not None:
            return _tag("pickle", self.add(self._codec.pickle(value)))
        kind = classes.name_of(type(value)).replace("builtins:", "").replace(":", ".")
        raise CodecError(
            f"{path or 'the value'} is a {kind}, which is not data"
            + (f" ({reason})" if reason else "")
            + ": send numbers, text, bytes, containers, dataclasses or arrays"
        )


def _fields_of(value: Any) -> tuple[str, Any] | None:
    """Return the tag and content of a value with named parts, or None."""
    if isinstance(value, enum.Flag) and value._name_ not in type(value).__members__:
        # Several flags, or none. Earlier versions know members alone.
        return "flag", value._value_
    if isinstance(value, enum.Enum):
        return "enum", value._name_
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, classes.Record):
            return None
        fields = dataclasses.fields(value)
        return "data", {field.name: getattr(value, field.name) for field in fields}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "named", tuple(value)
    return None


def _tag(tag: str, value: Any) -> dict[str, Any]:
    return {"$": tag, "v": value}


_ENCODERS: Mapping[type, Callable[[_Encoder, Any, str, int], Any]] = {
    list: _Encoder.list_,
    dict: _Encoder.dict_,
    tuple: lambda e, v, path, depth: _tag("tuple", e.list_(v, path, depth)),
    set: lambda e, v, path, depth: _tag("set", e.list_(v, path, depth)),
    frozenset: lambda e, v, path, depth: _tag("frozenset", e.list_(v, path, depth)),
    bytes: lambda e, v, _path, _depth: _tag("bytes", e.add(v)),
    bytearray: lambda e, v, _path, _depth: _tag("bytearray", e.add(bytes(v))),
    memoryview: lambda e, v, _path, _depth: _tag("bytes", e.add(v.tobytes())),
    complex: lambda _e, v, _path, _depth: _tag("complex", [v.real, v.imag]),
    range: lambda _e, v, _path, _depth: _tag("range", [v.start, v.stop, v.step]),
    slice: lambda e, v, path, depth: _tag("slice", e.list_([v.start, v.stop, v.step], path, depth)),
    **dict.fromkeys(containers.KINDS, _Encoder.collection),
}


_CONTENTS: Mapping[str, Any] = {"enum": str, "flag": int, "data": dict, "named": list}


class _Decoder:
    """One decoding: the buffers that trees refer to."""

    def __init__(self, codec: Codec, buffers: list[memoryview]) -> None:
        self._codec = codec
        self._buffers: list[memoryview | None] = list(buffers)

    def decode(self, tree: Any) -> Any:
        """Return the value of a tree."""
        if type(tree) is list:
            return [self.decode(each) for each in tree]
        if type(tree) is not dict:
            return tree
        if "$" not in tree:
            return {key: self.decode(each) for key, each in tree.items()}
        decode = _DECODERS.get(tree["$"]) if isinstance(tree["$"], Hashable) else None
        if decode is None:
            raise CodecError(f"{tree['$']!r} is no kind of value")
        return decode(self, tree)

    def buffer(self, number: Any) -> memoryview:
        """Return a buffer by its number, once: copies of one would exceed the message's limit."""
        if type(number) is not int or not 0 <= number < len(self._buffers):
            raise CodecError(f"there is no buffer {number!r}")
        found, self._buffers[number] = self._buffers[number], None
        if found is None:
            raise CodecError(f"buffer {number} is used twice")
        return found

    def array(self, tree: dict[str, Any]) -> Any:
        """Return an array."""
        return arrays.build(
            tree["of"],
            tree["dtype"],
            tree["shape"],
            self.buffer(tree["b"]),
            may_import=self._codec.may_import_torch,
        )

    def pickled(self, tree: dict[str, Any]) -> Any:
        """Return what was pickled, where that was requested."""
        if self._codec.unpickle is None:
            raise CodecError("the message contains a pickle, which this side has not requested")
        return self._codec.unpickle(bytes(self.buffer(tree["v"])))

    def mesh(self, tree: dict[str, Any]) -> Any:
        """Return the object that is sent as a reference."""
        if self._codec.resolve is None:
            raise CodecError("the message refers to a mesh of the other side")
        return self._codec.resolve(tree["v"])

    def collection(self, tree: dict[str, Any]) -> Any:
        """Return a container of `collections`."""
        if tree["$"] == "deque":
            content = [self.decode(each) for each in tree["v"]]
        else:
            content = [(self.decode(key), self.decode(value)) for key, value in tree["v"]]
        return containers.build(tree["$"], content, self.decode(tree["with"]))

    def record(self, tree: dict[str, Any]) -> Any:
        """Return an instance of a class by its name, or a `Record` if it is not known here."""
        tag, content = tree["$"], tree["v"]
        name: object = tree["type"]
        if not isinstance(name, str):
            raise CodecError(f"{name!r} is no name of a class")
        values: Any = content if tag == "enum" else self.decode(content)
        if not isinstance(values, _CONTENTS[tag]):
            raise CodecError(f"{name} cannot be made of a {type(values).__name__}")
        cls = self._codec.find_class(name)
        if cls is None:
            fields = values if isinstance(values, dict) else {"value": values}
            return classes.Record(name, fields)
        return _BUILDERS[tag](cls, values)


_BUILDERS: Mapping[str, Callable[[type, Any], Any]] = {
    "data": classes.build_dataclass,
    "named": classes.build_named_tuple,
    "enum": classes.build_member,
    "flag": classes.build_flags,
}


def _plain_list(tree: dict[str, Any], length: int) -> list[Any]:
    values = tree["v"]
    if type(values) is not list or len(values) != length:
        raise CodecError(f"{tree['$']} needs {length} values")
    return values


_DECODERS: Mapping[Any, Callable[[_Decoder, dict[str, Any]], Any]] = {
    "tuple": lambda d, tree: tuple(d.decode(tree["v"])),
    "set": lambda d, tree: set(d.decode(tree["v"])),
    "frozenset": lambda d, tree: frozenset(d.decode(tree["v"])),
    "dict": lambda d, tree: {d.decode(key): d.decode(value) for key, value in tree["v"]},
    "int": lambda _d, tree: int(tree["v"], 16),
    "complex": lambda _d, tree: complex(*_plain_list(tree, 2)),
    "range": lambda _d, tree: range(*_plain_list(tree, 3)),
    "slice": lambda d, tree: slice(*map(d.decode, _plain_list(tree, 3))),
    "bytes": lambda d, tree: bytes(d.buffer(tree["v"])),
    "bytearray": lambda d, tree: bytearray(d.buffer(tree["v"])),
    "array": _Decoder.array,
    "data": _Decoder.record,
    "named": _Decoder.record,
    "enum": _Decoder.record,
    "flag": _Decoder.record,
    **dict.fromkeys(containers.KINDS.values(), _Decoder.collection),
    "mesh": _Decoder.mesh,
    "pickle": _Decoder.pickled,
}
