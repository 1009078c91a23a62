"""The choice of functions that are pickled once, and the code that both sides remember."""

from __future__ import annotations

import types

from monarch_client.context.code import is_constant
from monarch_client.context.code_cache import CodeCache


def function_of(source: str, variables: dict[str, object] | None = None) -> types.FunctionType:
    """Return the function `f` of a source, with globals of its own."""
    made = {"__name__": "__main__", **(variables or {})}
    exec(source, made)
    function = made["f"]
    assert isinstance(function, types.FunctionType)
    return function


def test_a_function_whose_global_is_still_missing_is_pickled_again() -> None:
    source = "def f(): return later"
    assert not is_constant(function_of(source))
    assert not is_constant(function_of("def f(): return [lambda: later]"))
    assert not is_constant(function_of(source, {"later": 1}))


def test_attributes_and_builtins_do_not_make_a_function_variable() -> None:
    assert is_constant(
        function_of("def f(x): x.append(len(x)); return types.new", {"types": types})
    )


def test_remembered_code_is_limited_by_its_bytes_and_the_latest_stays() -> None:
    cache: CodeCache[int] = CodeCache(limit=10, limit_bytes=100)
    for number in range(4):
        cache.add(bytes([number]), number, 40)
    assert [cache.find(bytes([number])) for number in range(4)] == [None, None, 2, 3]
    cache.add(b"large", 5, 1000)
    assert cache.find(b"large") == 5
    assert cache.find(bytes([3])) is None
    cache.add(b"small", 6, 1)
    assert (cache.find(b"large"), cache.find(b"small")) == (None, 6)
