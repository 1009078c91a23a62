"""The planner and its peers on the same traces: utilization, waits, and the projects' parts.

`python -m bench.schedule.policies`. Two random traces: one that requests nine tenths of the
machine, for waits; and one that requests twice the machine, in which all projects always have
queued jobs, for utilization and shares. `--swf FILE --nodes N` plays a file instead of the first.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

from bench.measure import Peer, figures, report, say
from bench.schedule.ours import Ours
from bench.schedule.outcomes import (
    Spread,
    bounded_slowdowns,
    by_project,
    delivered,
    utilisation,
    waits_s,
)
from bench.schedule.peers import Easy, Fifo, Multifactor
from bench.schedule.simulate import Outcome, Policy, simulate
from bench.schedule.trace import HOUR_S, Recipe, Trace, drawn, of_file

OURS, EASY = Ours.name, Easy.name
POLICIES = (OURS, EASY, Multifactor.name, Fifo.name)


def policy(name: str, trace: Trace) -> Policy:
    """Create the named policy for this trace."""
    if name == Fifo.name:
        return Fifo()
    if name == Easy.name:
        return Easy()
    if name == Multifactor.name:
        return Multifactor(trace.weights, {(job.project, job.person) for job in trace.jobs})
    return Ours(trace.weights)


def outcome_of(name: str, trace: Trace) -> Outcome:
    """Simulate one policy on one trace."""
    return simulate(trace, policy(name, trace))


def play(trace: Trace, title: str) -> dict[str, Outcome]:
    """Simulate all policies, two at a time, and describe them on stderr."""
    say(f"{title}: {len(trace.jobs):,} jobs on {trace.nodes:,} nodes")
    with ProcessPoolExecutor(2) as pool:
        outcomes = dict(zip(POLICIES, pool.map(outcome_of, POLICIES, repeat(trace)), strict=True))
    for outcome in outcomes.values():
        describe(outcome)
    return outcomes


def describe(outcome: Outcome) -> None:
    """Print all figures of one policy on stderr."""
    runs = outcome.runs
    say(
        f"  {outcome.policy}: {utilisation(outcome):.2%} of the machine in use; "
        f"waits {_hours(waits_s(runs))}; bounded slowdowns {_times(bounded_slowdowns(runs))}; "
        f"{outcome.passes:,} passes over {outcome.decisions / max(1, outcome.passes):.0f} jobs, "
        f"{outcome.decisions / outcome.deciding_s:,.0f} decisions a second"
    )
    parts, lasted_s = delivered(outcome)
    total = sum(outcome.trace.weights.values())
    for project, mine in by_project(runs).items():
        weight = outcome.trace.weights[project] / total
        say(
            f"    project {project}, weight {weight:.2f}: {parts[project]:.3f} of what ran in the "
            f"{lasted_s / HOUR_S:.0f} h in which all had jobs waiting; "
            f"waits {_hours(waits_s(mine))}"
        )


def report_waits(outcomes: Mapping[str, Outcome]) -> None:
    """Report the figures of the trace that the machine can just serve."""
    for figure, unit, of in (
        ("wait_mean_s", "s", lambda each: waits_s(each.runs).mean),
        ("wait_median_s", "s", lambda each: waits_s(each.runs).median),
        ("wait_p95_s", "s", lambda each: waits_s(each.runs).p95),
        ("slowdown_mean", "times", lambda each: bounded_slowdowns(each.runs).mean),
        ("slowdown_p95", "times", lambda each: bounded_slowdowns(each.runs).p95),
        ("decisions_per_s", "1/s", lambda each: each.decisions / each.deciding_s),
    ):
        values = {name: of(outcome) for name, outcome in outcomes.items()}
        _report_beside(figure, unit, values)


def report_fullness(outcomes: Mapping[str, Outcome]) -> None:
    """Report the figures of the trace that requests more than the machine has."""
    values = {name: utilisation(outcome) for name, outcome in outcomes.items()}
    _report_beside("utilisation", "of all node-hours", values)
    errors = {name: share_error(outcome) for name, outcome in outcomes.items()}
    _report_beside("share_error", "of all node-hours", errors)


def share_error(outcome: Outcome) -> float:
    """Return the greatest distance of a project from its weight, while all projects queue."""
    parts, _ = delivered(outcome)
    total = sum(outcome.trace.weights.values())
    return max(abs(parts[each] - own / total) for each, own in outcome.trace.weights.items())


def _report_beside(figure: str, unit: str, values: Mapping[str, float]) -> None:
    for peer in POLICIES[1:]:
        report(figure, values[OURS], unit, peer=Peer(peer, values[peer]))


def _hours(values: Spread) -> str:
    return (
        f"mean {values.mean / HOUR_S:.2f} h, median {values.median / HOUR_S:.2f}, "
        f"p95 {values.p95 / HOUR_S:.2f}"
    )


def _times(values: Spread) -> str:
    return f"mean {values.mean:.1f}, median {values.median:.1f}, p95 {values.p95:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000, help="of the trace for waits")
    parser.add_argument("--overload-jobs", type=int, default=10_000, help="of the other one")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--swf", type=Path, help="a trace to play for waits")
    with figures():
        measure(parser.parse_args(arguments))


def measure(options: argparse.Namespace) -> None:
    """Simulate both traces and report."""
    recipe = Recipe(nodes=options.nodes, seed=options.seed, load=2.0, jobs=options.overload_jobs)
    report_fullness(play(drawn(recipe), "twice what there is"))
    if options.swf is not None:
        with options.swf.open(encoding="utf-8", errors="replace") as lines:
            trace = of_file(lines, options.nodes)
    else:
        trace = drawn(Recipe(nodes=options.nodes, seed=options.seed, jobs=options.jobs))
    report_waits(play(trace, "nine tenths of what there is" if options.swf is None else "a file"))


if __name__ == "__main__":
    main()
