"""References to objects and handles of actors, and which process holds which of them.

A reference is an id of 16 bytes. The home of a reference is the context of its process: it counts
how many references to an id the process has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from monarch_client.context.errors import ContextError

T = TypeVar("T")
_thread = threading.local()
# The context of a process that runs tasks: references that a program unpickles by itself.
_process: list[Home] = []


class Home(Protocol):
    """The context of a process, for its references."""

    @property
    def inline_limit(self) -> int:
        """The bytes of the largest value that may be inside of a message."""

    def keep(self, ref: bytes) -> None:
        """Count one more reference to `ref` in this process."""

    def drop(self, ref: bytes) -> None:
        """Count one less. Garbage collection calls this anywhere: it must not lock."""

    def store(self, value: object) -> bytes | None:
        """Write a value to the host's object store; return its id there, or None without one."""

    def load(self, object_id: bytes, source: str) -> Any:
        """Return a value of the object store of this host, or first of host `source`."""

    def call_actor(
        self, actor: bytes, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ObjectRef:
        """Call a method of an actor."""

    async def awaited(self, ref: bytes) -> Any:
        """Return the value of a reference once it is ready, or raise its error."""


class ObjectRef:
    """A reference to the value of a task, of a call, or of `put`.

    `get` returns the value, and so does `await` in a coroutine of asyncio.
    """

    __slots__ = ("__weakref__", "_home", "_id")

    def __init__(self, ref: bytes, home: Home) -> None:
        """Make a reference that its home counts, or will count once its call is made."""
        self._id = ref
        self._home = home

    @property
    def id(self) -> bytes:
        """The id of the object, unique in its context."""
        return self._id

    def __await__(self) -> Generator[Any, None, Any]:
        return (yield from self._home.awaited(self._id).__await__())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectRef) and other._id == self._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"ObjectRef({self._id.hex()})"

    def __reduce__(self) -> tuple[Any, ...]:
        note_contained(self._id)
        return adopt_ref, (self._id,)

    def __del__(self) -> None:
        home = getattr(self, "_home", None)
        if home is not None:  # else a signal interrupted `__init__`
            home.drop(self._id)


class ActorMethod:
    """A method of an actor: calling it returns a reference at once."""

    __slots__ = ("_handle", "_name")

    def __init__(self, handle: ActorHandle, name: str) -> None:
        self._handle = handle
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> ObjectRef:
        return self._handle._call(self._name, args, kwargs)


class ActorHandle:
    """A handle of an actor: `handle.method(...)` calls its method, whatever its name."""

    __slots__ = ("__weakref__", "_home", "_id", "_text")

    def __init__(self, actor: bytes, text: str, home: Home) -> None:
        """Make a handle that its home counts already."""
        self._id = actor
        self._text = text
        self._home = home

    def _call(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ObjectRef:
        return self._home.call_actor(self._id, method, args, kwargs)

    def __getattr__(self, name: str) -> ActorMethod:
        if name.startswith("__"):
            raise AttributeError(name)
        return ActorMethod(self, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActorHandle) and other._id == self._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"ActorHandle({self._text})"

    def __reduce__(self) -> tuple[Any, ...]:
        note_contained(self._id)
        return adopt_handle, (self._id, self._text)

    def __del__(self) -> None:
        # Not `getattr`, which finds a method of the actor.
        with suppress(AttributeError):
            home: Home = object.__getattribute__(self, "_home")
            home.drop(self._id)


def adopt_ref(ref: bytes) -> ObjectRef:
    """Unpickle a reference."""
    home = _own_home()
    home.keep(ref)
    return ObjectRef(ref, home)


def adopt_handle(actor: bytes, text: str) -> ActorHandle:
    """Unpickle a handle."""
    home = _own_home()
    home.keep(actor)
    return ActorHandle(actor, text, home)


def set_process_home(home: Home) -> None:
    """Make `home` the context of all references that this process unpickles."""
    _process[:] = [home]


def note_contained(ref: bytes) -> None:
    """Register a reference that is being pickled."""
    found = getattr(_thread, "found", None)
    if found is not None:
        found.append(ref)


@contextmanager
def contained_refs() -> Iterator[list[bytes]]:
    """Collect the ids of the references that this thread pickles within the block."""
    before = getattr(_thread, "found", None)
    found: list[bytes] = []
    _thread.found = found
    try:
        yield found
    finally:
        _thread.found = before


def load_for(home: Home, load: Callable[[T], Any], data: T) -> Any:
    """Return what `load` makes of the data; the references that it unpickles belong to `home`.

    Not a context manager: for each value that would take longer than the rest.
    """
    before = getattr(_thread, "home", None)
    _thread.home = home
    try:
        return load(data)
    finally:
        _thread.home = before


def _own_home() -> Home:
    home: Home | None = getattr(_thread, "home", None)
    if home is not None:
        return home
    if _process:
        return _process[0]
    raise ContextError("A reference was unpickled outside of its context. Use `get` to read it.")
