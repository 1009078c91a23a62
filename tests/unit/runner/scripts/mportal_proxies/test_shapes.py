"""Shapes change as Monarch's meshes do; tests/integration/gateway compares both."""

from __future__ import annotations

from typing import Any

import pytest

from monarch_client.runner.scripts.mportal_proxies.shapes import Shape
from tests.each_case import check_each

SHAPE = Shape.dense({"hosts": 4, "gpus": 6})


def test_slices_select_ranks() -> None:
    cases = [
        ({"hosts": 1}, {"gpus": 6}, [6, 7, 8, 9, 10, 11]),
        ({"hosts": 1, "gpus": 2}, {}, [8]),
        ({"hosts": slice(1, 3), "gpus": 0}, {"hosts": 2}, [6, 12]),
        ({"hosts": 0, "gpus": slice(None, None, 2)}, {"gpus": 3}, [0, 2, 4]),
        ({"hosts": slice(-1, 99), "gpus": slice(4, None)}, {"hosts": 1, "gpus": 2}, [22, 23]),
        ({}, {"hosts": 4, "gpus": 6}, list(range(24))),
    ]

    def check(selectors: dict[str, Any], sizes: dict[str, int], ranks: list[int]) -> None:
        found = SHAPE.slice(selectors)
        assert (found.as_dict(), found.ranks()) == (sizes, ranks)
        assert len(found) == len(ranks)

    check_each(cases, check)


def test_wrong_coordinates_are_errors() -> None:
    cases: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"hosts": 4}, IndexError),
        ({"hosts": -1}, IndexError),
        ({"racks": 0}, TypeError),
        ({"hosts": "a"}, TypeError),
        ({"hosts": slice(3, 3)}, ValueError),
        ({"hosts": slice(9, 12)}, ValueError),
        ({"hosts": slice(3, 0, -1)}, ValueError),
    ]

    def check(selectors: dict[str, Any], error: type[Exception]) -> None:
        with pytest.raises(error):
            SHAPE.slice(selectors)

    check_each(cases, check)


def test_an_item_needs_each_coordinate_and_no_other() -> None:
    assert SHAPE.slice({"hosts": slice(1, 3)}).rank_at({"hosts": 1, "gpus": 2}) == 14
    cases: list[tuple[dict[str, int], type[Exception]]] = [
        ({"hosts": 0}, KeyError),
        ({"hosts": 0, "gpus": 0, "racks": 0}, KeyError),
        ({"hosts": 0, "gpus": 6}, IndexError),
        ({"hosts": -1, "gpus": 0}, IndexError),
    ]

    def check(coordinates: dict[str, int], error: type[Exception]) -> None:
        with pytest.raises(error):
            SHAPE.rank_at(coordinates)

    check_each(cases, check)


def test_a_split_divides_dimensions() -> None:
    split = SHAPE.split({"gpus": ("pipeline", "tensor"), "tensor": 3})
    assert split.as_dict() == {"hosts": 4, "pipeline": 2, "tensor": 3}
    assert split.ranks() == SHAPE.ranks()
    assert split.slice({"pipeline": 1, "tensor": 0, "hosts": 0}).ranks() == [3]


def test_a_split_that_does_not_fit_is_an_error() -> None:
    cases = [
        {"gpus": ("a", "b")},
        {"gpus": ("a", "b"), "a": 4},
        {"gpus": ("a", "b"), "a": 2, "b": 2},
        {"gpus": "ab"},
        {"gpus": ("a", "b"), "a": 2, "c": 3},
        {"gpus": ("hosts",)},
        {"racks": ("a",)},
    ]

    def check(given: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            SHAPE.split(given)

    check_each(cases, check)


def test_only_contiguous_ranks_are_flattened() -> None:
    assert SHAPE.slice({"hosts": 1}).flatten("rank").ranks() == [6, 7, 8, 9, 10, 11]
    with pytest.raises(ValueError, match="sparse"):
        SHAPE.slice({"gpus": 0}).flatten("rank")
