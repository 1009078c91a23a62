"""Processes that hold many objects look for garbage less often than Python would."""

from __future__ import annotations

import gc

import pytest
from celery.signals import worker_init

import monarch_portal.celery  # noqa: F401 - what the signal is for


@pytest.fixture(autouse=True)
def _as_before():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_a_worker_that_begins_looks_for_garbage_seldom():
    gc.set_threshold(700)
    worker_init.send(sender=None)
    assert gc.get_threshold()[0] == 20_000
