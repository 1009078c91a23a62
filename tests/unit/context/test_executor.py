"""The two threads of an executor."""

from __future__ import annotations

import socket
import sys
import threading
from typing import Any

from monarch_client.context.executor import Executor
from monarch_client.context.task_context import TaskContext
from tests.waiting import eventually


def test_a_call_that_the_control_thread_has_read_is_run_at_once() -> None:
    tasks, calls = socket.socketpair()
    control, requests = socket.socketpair()
    with tasks, calls, control, requests:
        executor = Executor(TaskContext(1, ""), tasks, control)
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(executor._next()), daemon=True)
        with executor._reading:
            thread.start()
            assert eventually(lambda: is_in(thread, "_next"))
            executor._waiting.append(("call", None))
        thread.join(10)
        assert found == [("call", None)]


def is_in(thread: threading.Thread, function: str) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_name == function
