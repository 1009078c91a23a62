"""Resources of tasks and actors on a real host."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from monarch_client.context import ActorOptions, JobContext, TaskOptions
from monarch_client.context.errors import InfeasibleError
from tests.each_case import check_each
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S4.4")


def test_whatever_the_host_has_can_be_requested(context: JobContext) -> None:
    def runs(resources) -> None:
        task = context.create_task(lambda: 42, options=TaskOptions(resources=resources))
        assert context.get(task, timeout=60) == 42

    check_each(
        (
            {"CPU": 2, "memory": 2**30},
            {"CPU": 4, "memory": 8 * 2**30},
            {"CPU": 0.5},
            {"GPU": 1},
            {"head_node": 0.0001},
            {},
        ),
        runs,
    )


def test_actors_hold_what_they_request(context: JobContext) -> None:
    class Sees:
        def gpus(self):
            import os

            return os.environ["CUDA_VISIBLE_DEVICES"]

    options = ActorOptions(resources={"CPU": 0, "GPU": 1})
    first, second = (context.create_actor(Sees, options=options) for _ in range(2))
    assert sorted(context.get([first.gpus(), second.gpus()])) == ["0", "1"]
    waits = context.create_task(lambda: "ran", options=TaskOptions(resources={"GPU": 0.5}))
    assert context.wait([waits], timeout=0.1) == ([], [waits])
    del first
    assert context.get(waits, timeout=60) == "ran"


def test_the_process_of_an_ended_task_leaves_its_gpus_to_the_next_process(
    context: JobContext,
) -> None:
    class Model:
        def pid(self):
            import os

            return os.getpid()

    task = context.create_task(os.getpid, options=TaskOptions(resources={"GPU": 2}))
    ended = context.get(task, timeout=60)
    model = context.create_actor(Model, options=ActorOptions(resources={"GPU": 1}))
    assert context.get(model.pid(), timeout=60) != ended
    assert eventually(lambda: not Path(f"/proc/{ended}").exists())


def test_the_processes_that_shared_a_gpu_leave_it_to_the_task_that_gets_it_whole(
    tmp_path: Path,
) -> None:
    def meet(own: str, other: str) -> int:
        import os
        import time
        from pathlib import Path

        Path(own).touch()
        while not Path(other).exists():
            time.sleep(0.01)
        return os.getpid()

    both = [str(tmp_path / name) for name in "ab"]
    half = TaskOptions(resources={"GPU": 0.5})
    with JobContext(resources={"CPU": 4, "GPU": 1}) as context:
        tasks = [
            context.create_task(meet, args=paths, options=half) for paths in (both, both[::-1])
        ]
        shared = set(context.get(tasks, timeout=60))
        assert len(shared) == 2
        whole = context.create_task(os.getpid, options=TaskOptions(resources={"GPU": 1}))
        ended = shared - {context.get(whole, timeout=60)}
        assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in ended))


def test_a_process_does_not_start_while_the_former_one_of_its_gpu_has_not_ended() -> None:
    one = TaskOptions(resources={"GPU": 1})
    with JobContext(resources={"CPU": 2, "GPU": 1}) as context:
        former = context.get(context.create_task(os.getpid, options=one), timeout=60)
        os.kill(former, signal.SIGSTOP)  # it cannot end
        waits = context.create_task(
            os.getpid, options=TaskOptions(resources={"GPU": 1}, max_calls=1)
        )
        assert context.wait([waits], timeout=1) == ([], [waits])
        os.kill(former, signal.SIGCONT)
        assert context.get(waits, timeout=60) != former


def test_what_no_host_can_fit_is_refused_with_the_amount_and_the_largest(
    context: JobContext,
) -> None:
    def refuses(resources, reason) -> None:
        with pytest.raises(InfeasibleError, match=re.escape(reason)):
            context.create_task(lambda: 1, options=TaskOptions(resources=resources))
        with pytest.raises(ValueError, match=re.escape(reason)):
            context.create_actor(int, options=ActorOptions(resources=resources))

    host = os.uname().nodename
    check_each(
        (
            ({"CPU": 5}, f"5 CPU was requested. The largest host, {host}, has 4 CPU."),
            ({"memory": 2**40}, f"1.02e+03 GiB memory was requested. The largest host, {host}, "),
            ({"TPU": 1}, "1 TPU was requested. Hosts have 0 TPU."),
        ),
        refuses,
    )


def test_impossible_amounts_are_refused(context: JobContext) -> None:
    def refuses(resources, error) -> None:
        with pytest.raises(error):
            context.create_task(lambda: 1, options=TaskOptions(resources=resources))

    check_each(
        (
            ({"CPU": -1}, ValueError),
            ({"CPU": float("nan")}, ValueError),
            ({"CPU": "1"}, TypeError),
            ({"GPU": 1.5}, ValueError),
            ({"CPU": 0.00001}, ValueError),
        ),
        refuses,
    )


def test_no_more_tasks_run_at_once_than_fit(context: JobContext, tmp_path: Path) -> None:
    def crowd():
        # Each task has a file while it runs.
        import os
        import time

        own = tmp_path / str(os.getpid())
        own.touch()
        deadline = time.monotonic() + 0.05
        seen = 0
        while time.monotonic() < deadline:
            seen = max(seen, len(list(tmp_path.iterdir())))
        own.unlink()
        return seen

    options = TaskOptions(resources={"CPU": 2})
    refs = [context.create_task(crowd, options=options) for _ in range(8)]
    assert max(context.get(refs)) <= 2
