"""Crash points: each is reached at one place in the code, documented, and in the test matrix."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

from monarch_client.crash_points import POINTS
from tests.architecture.source import ROOT, name_of, nodes_of, python_files, text_of
from tests.faults import cells
from tests.faults.sky import cells as sky_cells
from tests.faults.sky.points import OF_SERVER

REFERENCE = ROOT / "docs" / "reference" / "crash-points.md"


def places() -> Iterator[tuple[str, str]]:
    """Yield (point, file) of every call of `reach` in the product."""
    for path in python_files():
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and _last_name(node.func) == "reach":
                yield ast.literal_eval(node.args[0]), name_of(path)


def _last_name(func: ast.expr) -> str:
    """Return `reach` for both `reach(...)` and `crash_points.reach(...)`."""
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def test_every_point_is_reached_at_exactly_one_place() -> None:
    assert Counter(point for point, _ in places()) == Counter(list(POINTS))


def test_every_point_is_documented_with_its_place_and_what_has_happened() -> None:
    rows = [f"| `{point}` | `{file}` | {POINTS[point]} |" for point, file in places()]
    text = text_of(REFERENCE)
    assert [row for row in rows if row not in text] == []
    assert text.count("\n| `") == len(POINTS)


def test_the_crash_matrix_strikes_at_every_point() -> None:
    assert {*cells.POINTS, *cells.ELSEWHERE} == set(POINTS)
    assert {cell.point for cell in cells.default_cells()} == set(cells.POINTS)


def test_the_crash_matrix_kills_and_stops_every_victim_at_several_points() -> None:
    struck = defaultdict(set)
    for cell in cells.default_cells():
        struck[cell.victim, cell.strike].add(cell.point)
    assert {pair: points for pair, points in struck.items() if len(points) < 2} == {}
    assert len(struck) == len(cells.VICTIMS) * len(cells.STRIKES)


def test_the_default_cells_are_among_all_that_make_sense() -> None:
    assert set(cells.default_cells()) <= set(cells.every_cell())


def test_the_matrix_on_skypilots_machines_strikes_at_every_point_of_skypilots_part() -> None:
    assert set(sky_cells.POINTS) <= {*POINTS, *OF_SERVER}
    assert {"launch.staged", "launch.sent", "follow.read"} <= set(sky_cells.POINTS)
    assert {cell.point for cell in sky_cells.default_cells()} == set(sky_cells.POINTS)


def test_the_matrix_on_skypilots_machines_kills_and_stops_every_victim_and_cancels_everywhere() -> (
    None
):
    struck = {(cell.victim, cell.strike) for cell in sky_cells.default_cells()}
    pairs = {(victim, strike) for victim in sky_cells.VICTIMS for strike in sky_cells.STRIKES}
    assert pairs <= struck
    cancelled = {cell.point for cell in sky_cells.default_cells() if cell.strike == "CANCEL"}
    assert cancelled == set(sky_cells.CANCELLED_AT)


def test_the_default_cells_on_skypilots_machines_are_among_all_that_make_sense() -> None:
    assert set(sky_cells.default_cells()) <= set(sky_cells.every_cell())
