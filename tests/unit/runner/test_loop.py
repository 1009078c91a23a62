from __future__ import annotations

import threading

from monarch_client.runner.loop import MainLoop


def test_calls_are_made_in_order_on_the_loops_thread() -> None:
    loop, seen = MainLoop(), []

    def call(name: str) -> None:
        seen.append((name, threading.get_ident()))

    def post_all() -> None:
        loop.post(lambda: call("a"))
        loop.post(lambda: call("b"))
        loop.post(loop.stop)

    threading.Thread(target=post_all).start()
    loop.run()
    assert seen == [("a", threading.get_ident()), ("b", threading.get_ident())]


def test_timers_fire_by_time_and_not_when_cancelled() -> None:
    loop, seen = MainLoop(), []
    loop.call_later(0.02, loop.stop)
    loop.call_later(0.01, lambda: seen.append("second"))
    loop.call_later(0.0, lambda: seen.append("first"))
    loop.call_later(0.0, lambda: seen.append("never")).cancel()
    loop.run()
    assert seen == ["first", "second"]


def test_a_call_made_by_a_call_is_made_too() -> None:
    loop, seen = MainLoop(), []

    def inner() -> None:
        seen.append("inner")
        loop.stop()

    loop.post(lambda: loop.post(inner))
    loop.run()
    assert seen == ["inner"]
