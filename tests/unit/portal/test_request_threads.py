"""Threads of requests: lent to one at a time, taken again, and not kept without number."""

from __future__ import annotations

import threading

import pytest

from monarch_portal import request_threads
from monarch_portal.request_threads import KeptThreads, RequestThread
from tests.waiting import eventually


@pytest.fixture
def kept():
    kept = KeptThreads()
    yield kept
    while kept.count:
        kept.take().shutdown()


def ident_in(thread: RequestThread) -> int:
    return thread.submit(threading.get_ident).result(timeout=20)


def _threads() -> int:
    return sum(each.name.startswith("request") for each in threading.enumerate())


def test_calls_of_one_request_run_in_one_thread(kept):
    thread = RequestThread(kept)
    assert ident_in(thread) == ident_in(thread)
    thread.let_go()


def test_the_next_request_takes_the_thread_of_one_that_is_over(kept):
    idents = []
    for _ in range(3):
        thread = RequestThread(kept)
        idents.append(ident_in(thread))
        thread.let_go()
        assert eventually(lambda: kept.count == 1)
    assert len(set(idents)) == 1


def test_requests_at_the_same_time_share_none(kept):
    first, second = RequestThread(kept), RequestThread(kept)
    assert ident_in(first) != ident_in(second)
    first.let_go()
    second.let_go()


def test_one_that_made_no_call_has_taken_none(kept):
    RequestThread(kept).let_go()
    assert kept.count == 0


def test_a_thread_that_still_works_for_a_request_that_was_cut_off_is_lent_to_nobody(kept):
    cut_off, goes_on = RequestThread(kept), threading.Event()
    busy = cut_off.submit(goes_on.wait, 20)
    cut_off.let_go()
    other = RequestThread(kept)
    assert ident_in(other)
    assert not busy.done()
    goes_on.set()
    assert busy.result(timeout=20)
    other.let_go()


def test_no_more_are_kept_than_are_of_use(kept, monkeypatch):
    monkeypatch.setattr(request_threads, "MOST_IDLE", 2)
    before = _threads()
    together = [RequestThread(kept) for _ in range(5)]
    for each in together:
        ident_in(each)
    for each in together:
        each.let_go()
    assert eventually(lambda: kept.count == 2)
    assert eventually(lambda: _threads() <= before + 2)


def test_a_thread_goes_back_with_no_connection_open(kept, monkeypatch):
    closed = []
    monkeypatch.setattr(
        request_threads.connections, "close_all", lambda: closed.append(threading.get_ident())
    )
    thread = RequestThread(kept)
    ident = ident_in(thread)
    thread.let_go()
    assert eventually(lambda: kept.count == 1)
    assert closed == [ident]


def test_a_call_that_was_taken_back_gives_no_busy_thread_away(kept):
    thread, goes_on = RequestThread(kept), threading.Event()
    busy = thread.submit(goes_on.wait, 20)
    assert thread.submit(print).cancel()
    thread.let_go()
    assert kept.count == 0
    goes_on.set()
    assert busy.result(timeout=20)
    assert eventually(lambda: kept.count == 1)
