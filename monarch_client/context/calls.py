"""Calls as messages: functions and arguments are pickled here, when the call is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from monarch_client.context.amounts import actor_shape, task_shape
from monarch_client.context.code import code_of
from monarch_client.context.event_loop import has_async_methods
from monarch_client.context.ids import new_id
from monarch_client.context.options import (
    ActorOptions,
    Lifetime,
    RuntimeEnv,
    TaskOptions,
)
from monarch_client.context.refs import Home, ObjectRef
from monarch_client.context.texts import check_text
from monarch_client.context.values import STORED, VALUE, Payload, pickled_arguments
from monarch_client.context.wire import Call, NewActor

CONSTRUCTOR = "__init__"
# The places of objects that are all arguments of a call, and its function.
ALL, FUNCTION = -1, -2
# As many calls of an async actor run at once, unless its options say otherwise.
_ASYNC_CONCURRENCY = 1000
_NO_ARGUMENTS = Payload(VALUE, b"")


def task_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    options: TaskOptions | None,
    home: Home,
) -> Call:
    """Return the call that runs a function as a task."""
    if not callable(function):
        raise TypeError(f"a task is made of a function, and not of {function!r}")
    options = options or TaskOptions()
    call = _started_by(function, args, kwargs, options, home)
    call.function = _name_of(function) if options.name else ""
    call.shape = list(task_shape(options.resources))
    call.max_calls, call.max_retries = options.max_calls, options.max_retries
    return call


def new_actor(
    klass: type[Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    options: ActorOptions | None,
    home: Home,
) -> NewActor:
    """Return the actor that a class makes."""
    if not callable(klass):
        raise TypeError(f"an actor is made of a class, and not of {klass!r}")
    options = options or ActorOptions()
    call = _started_by(klass, args, kwargs, options, home)
    call.shape = list(actor_shape(options.resources))
    call.method = CONSTRUCTOR
    return NewActor(
        call=call,
        name=options.name or "",
        get_if_exists=options.get_if_exists,
        detached=options.lifetime is Lifetime.DETACHED,
        max_concurrency=options.max_concurrency or default_concurrency(klass),
        kind=_name_of(klass),
    )


def default_concurrency(klass: type[Any]) -> int:
    """Return how many calls of an actor of this class run at once by default."""
    return _ASYNC_CONCURRENCY if has_async_methods(klass) else 1


def _started_by(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    options: TaskOptions | ActorOptions,
    home: Home,
) -> Call:
    """Return the call of a function or class, with its arguments, code and environment."""
    arguments = arguments_call(options.name or _name_of(function), args, kwargs, home)
    call = _with_code(arguments, function)
    _add_environment(call, options.runtime_env)
    return call


def _with_code(call: Call, function: Callable[..., Any]) -> Call:
    """Return the call with its function."""
    code = code_of(function)
    call.code, call.digest, call.code_bytes = code.data, code.digest, len(code.data)
    call.holds += code.refs
    return call


def arguments_call(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any] | None, home: Home
) -> Call:
    """Return a call with its arguments pickled, apart from those that are references."""
    call = Call(new_id(), name, b"", b"", _NO_ARGUMENTS)
    plain_args, plain_kwargs = list(args), dict(kwargs or {})
    for position, value in enumerate(plain_args):
        if isinstance(value, ObjectRef):
            call.places.append(position)
            call.needs.append(value.id)
            plain_args[position] = None
    for key, value in plain_kwargs.items():
        check_text("the name of an argument", key)
        if isinstance(value, ObjectRef):
            call.places.append(key)
            call.needs.append(value.id)
            plain_kwargs[key] = None
    call.args = pickled_arguments(plain_args, plain_kwargs, home)
    call.holds += call.args.refs
    return call


def stored_arguments(call: Call) -> Payload | None:
    """Return the arguments if they are in the store, and let `ALL` stand for them in the call.

    The caller makes an object of them, whose id it appends to `needs`.
    """
    if call.args.kind != STORED:
        return None
    # The call itself holds the references inside.
    payload = Payload(STORED, call.args.data, size=call.args.size)
    call.args = _NO_ARGUMENTS
    call.places.append(ALL)
    return payload


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _add_environment(call: Call, runtime_env: RuntimeEnv | None) -> None:
    if runtime_env is not None:
        call.env = dict(runtime_env.env)
        call.packages = list(runtime_env.package_requirements)
