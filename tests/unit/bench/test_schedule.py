"""Requirements of the queue's figures: traces are read right, no policy does the impossible."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.schedule.__main__ import commands
from bench.schedule.outcomes import bounded_slowdowns, delivered, spread, utilisation, waits_s
from bench.schedule.policies import POLICIES, outcome_of
from bench.schedule.simulate import Outcome, Run, ScheduleError, State, simulate
from bench.schedule.trace import (
    DAY_S,
    Recipe,
    Trace,
    TraceError,
    TraceJob,
    drawn,
    of_file,
    read_swf,
)

SMALL = Path(__file__).parent / "data" / "small.swf"
FEW = Recipe(jobs=300, nodes=200, largest=64, load=1.5)


def trace_of(*jobs: TraceJob, nodes: int = 4) -> Trace:
    return Trace(jobs, nodes, {job.project: 1.0 for job in jobs})


def starts(trace: Trace, policy: str) -> dict[int, float]:
    return {run.job.number: run.began_s for run in outcome_of(policy, trace).runs}


def test_a_file_says_size_times_and_owners_of_all_that_ran():
    jobs = list(read_swf(SMALL.read_text().splitlines()))
    assert jobs == [
        TraceJob(1, 0, 2, 100, 200, project=1, person=7),
        TraceJob(2, 10, 4, 50, 60, project=2, person=8),
        # Allocated processors replace missing requested ones; no job runs beyond its time limit.
        TraceJob(3, 20, 1, 100, 100, project=1, person=7),
        # Less than half a second, and no bound.
        TraceJob(5, 40, 1, 1, 1, project=2, person=9),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 2 3", "line 1 has 3 fields; SWF has 18"),
        ("; nothing\n" + "x " * 18, "line 2: could not convert string to float: 'x'"),
    ],
)
def test_a_line_that_is_not_in_the_format_is_named(text, said):
    with pytest.raises(TraceError, match=said):
        list(read_swf(text.splitlines()))


def test_a_file_does_not_play_on_a_machine_that_is_too_small_for_it():
    with pytest.raises(TraceError, match="a job requests 4 nodes; the machine has 3"):
        of_file(SMALL.read_text().splitlines(), 3)
    with pytest.raises(TraceError, match="no jobs"):
        of_file([], 3)


def test_what_is_drawn_is_the_same_for_a_seed_and_asks_for_the_load_that_was_wanted():
    recipe = Recipe(jobs=3000, nodes=500, largest=64, load=0.8)
    trace = drawn(recipe)
    assert trace == drawn(recipe) != drawn(Recipe(jobs=3000, nodes=500, largest=64, seed=1))
    requested = sum(job.node_seconds for job in trace.jobs) / (trace.until_s * trace.nodes)
    assert requested == pytest.approx(0.8, rel=0.05)
    assert all(1 <= job.nodes <= 64 and 0 < job.runs_s <= job.asks_s for job in trace.jobs)
    submits = [job.submit_s for job in trace.jobs]
    assert submits == sorted(submits)
    assert {job.project for job in trace.jobs} == set(trace.weights)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_job_runs_once_and_never_on_more_nodes_than_there_are(policy):
    trace = drawn(FEW)
    outcome = outcome_of(policy, trace)
    assert sorted(run.job.number for run in outcome.runs) == list(range(1, FEW.jobs + 1))
    assert all(run.waited_s >= 0 for run in outcome.runs)
    changes = [(run.began_s, run.job.nodes) for run in outcome.runs]
    changes += [(run.ended_s, -run.job.nodes) for run in outcome.runs]
    in_use = 0
    for _, nodes in sorted(changes):
        in_use += nodes
        assert 0 <= in_use <= trace.nodes


def test_first_in_first_out_starts_in_the_order_of_submission():
    runs = outcome_of("fifo", drawn(FEW)).runs
    assert [run.job.number for run in runs] == list(range(1, FEW.jobs + 1))


@pytest.mark.parametrize("policy", ["easy", "portal", "slurm multifactor"])
def test_who_costs_the_first_nothing_starts_before_it(policy):
    trace = trace_of(
        TraceJob(1, 0, 3, 100, 100),
        TraceJob(2, 1, 4, 10, 10),
        TraceJob(3, 2, 1, 500, 500),  # would keep it waiting
        TraceJob(4, 3, 1, 50, 50),  # ends before
    )
    began = starts(trace, policy)
    assert began == {1: 0, 4: 3, 2: 100, 3: 110}
    assert starts(trace, "fifo") == {1: 0, 2: 100, 3: 110, 4: 110}


def test_there_is_one_pass_a_second_and_none_without_room():
    trace = trace_of(
        TraceJob(1, 0.0, 2, 10, 10), TraceJob(2, 0.4, 2, 10, 10), TraceJob(3, 0.6, 1, 5, 5)
    )
    outcome = outcome_of("fifo", trace)
    assert [(run.job.number, run.began_s) for run in outcome.runs] == [(1, 0), (2, 1), (3, 10)]
    assert outcome.passes == 3


class Greedy:
    name = "greedy"

    def choose(self, state: State) -> list[TraceJob]:
        return list(state.queued.values())

    def ended(self, run: Run, now_s: float) -> None:
        pass


class Idle(Greedy):
    name = "idle"

    def choose(self, state: State) -> list[TraceJob]:
        return []


def test_a_policy_that_starts_more_than_fits_or_no_job_is_refused():
    trace = trace_of(TraceJob(1, 0, 3, 10, 10), TraceJob(2, 0, 3, 10, 10))
    with pytest.raises(ScheduleError, match="greedy starts job 2 of 3 nodes at 0 s; 1 are free"):
        simulate(trace, Greedy())
    with pytest.raises(ScheduleError, match="idle never starts 2 jobs"):
        simulate(trace, Idle())


def test_waits_slowdowns_and_use_are_what_they_are_by_hand():
    first, second = TraceJob(1, 0, 4, 100, 100), TraceJob(2, 50, 2, 5, 5, project=1)
    outcome = Outcome("hand", trace_of(first, second), [Run(first, 0), Run(second, 100)])
    assert waits_s(outcome.runs).mean == 25
    assert bounded_slowdowns(outcome.runs).p95 == 5.5  # (50 + 5) / 10
    assert utilisation(outcome) == 1
    assert delivered(outcome) == ({0: 0, 1: 0}, 0)
    with pytest.raises(ValueError, match="no values"):
        spread([])


@pytest.mark.feature("P5.2")
def test_while_all_projects_wait_the_plan_gives_each_what_its_weight_says():
    jobs = tuple(
        TraceJob(number, 0, 1, 3600, 3600, project=number % 2, person=number % 2)
        for number in range(1, 2001)
    )
    outcome = outcome_of("portal", Trace(jobs, 20, {0: 3.0, 1: 1.0}))
    parts, lasted_s = delivered(outcome)
    assert lasted_s > DAY_S
    assert parts[0] == pytest.approx(0.75, abs=0.02)


def test_parts_that_there_are_not_are_reported():
    assert [command[2] for command in commands([])] == [
        "bench.schedule.passes",
        "bench.schedule.policies",
        "bench.schedule.lag",
    ]
    assert commands(["passes", "--queued", "9"])[0][2:] == [
        "bench.schedule.passes",
        "--queued",
        "9",
    ]
    with pytest.raises(ValueError, match="no such part: other"):
        commands(["other"])
