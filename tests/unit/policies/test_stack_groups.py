"""Equal stacks of several ranks in one group."""

from __future__ import annotations

from jobs.policies.stack_groups import main_frames, stack_groups

COLLECTIVE = """Process 7: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 9 (idle): "Thread-1"
    wait (threading.py:327)
Thread 7 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2501)
    step (train.py:40)
    <module> (train.py:60)"""
STUCK = COLLECTIVE.replace("all_reduce (torch/distributed/distributed_c10d.py:2501)", "{}")


def test_the_rank_that_differs_is_a_group_of_its_own_after_the_others() -> None:
    stuck = STUCK.format("wait (threading.py:327)\n    read_batch (data.py:4)")
    texts = [(rank, stuck if rank == 2 else COLLECTIVE) for rank in range(13)]
    many, one = stack_groups(texts)
    assert (many.ranks, many.processes) == ((0, 1, *range(3, 13)), 12)
    assert many.where == "all_reduce (torch/distributed/distributed_c10d.py:2501)"
    assert one.ranks == (2,)
    # It waits for what `read_batch` waits for.
    assert one.where == "read_batch (data.py:4)"


def test_processes_of_one_rank_count_apart() -> None:
    (group,) = stack_groups([(0, COLLECTIVE), (0, COLLECTIVE), (1, COLLECTIVE)])
    assert (group.ranks, group.processes) == ((0, 1), 3)


def test_a_stack_that_only_waits_is_named_by_its_innermost_call() -> None:
    (group,) = stack_groups([(0, 'Thread 7 (idle): "MainThread"\n    wait (threading.py:327)')])
    assert group.where == "wait (threading.py:327)"


def test_the_main_thread_counts_and_without_one_the_first() -> None:
    assert main_frames(COLLECTIVE)[1] == "step (train.py:40)"
    assert main_frames("Thread 1 (active)\n    a (b.py:1)\nThread 2\n    c (d.py:2)") == (
        "a (b.py:1)",
    )
    assert main_frames("Process 7: python\n") == ()
    assert stack_groups([(0, "")]) == []
