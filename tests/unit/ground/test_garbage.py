"""Processes that hold many objects look for garbage less often than Python would."""

from __future__ import annotations

import gc

import pytest
from celery.signals import worker_init

import monarch_portal.celery  # noqa: F401 - what the signal is for
from jobs.ground.garbage import look_later


@pytest.fixture(autouse=True)
def _as_before():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_a_worker_that_begins_looks_for_garbage_seldom():
    gc.set_threshold(700)
    worker_init.send(sender=None)
    assert gc.get_threshold()[0] == 20_000


def test_python_looks_again_after_a_block_without_looks_whatever_ended_it():
    with pytest.raises(ZeroDivisionError), look_later():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


def test_who_never_looks_does_not_begin_to():
    gc.disable()
    try:
        with look_later():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
