"""Options that callers write, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.context import ActorOptions, Lifetime, Resource, RuntimeEnv, TaskOptions
from tests.each_case import check_each


def test_a_runtime_environment_refuses_what_it_cannot_mean() -> None:
    def refuses(error, options) -> None:
        with pytest.raises(error):
            RuntimeEnv(**options())

    check_each(
        (
            (
                ValueError,
                lambda: {
                    "minimum_resources": [Resource("CPU", 4)],
                    "maximum_resources": [Resource("CPU", 2)],
                },
            ),
            (ValueError, lambda: {"minimum_resources": [Resource("CPU", -1)]}),
            (ValueError, lambda: {"package_requirements": [" "]}),
            (TypeError, lambda: {"package_requirements": [1]}),
            (TypeError, lambda: {"env": {1: "a"}}),
            (TypeError, lambda: {"env": {"a": 1}}),
        ),
        refuses,
    )


def test_a_valid_runtime_environment_is_accepted() -> None:
    made = RuntimeEnv(
        package_requirements=["numpy>=2"],
        minimum_resources=[Resource("CPU", 1), Resource("memory", 2**30)],
        maximum_resources=[Resource("CPU", 1)],
        env={"A": "1"},
    )
    assert made.env == {"A": "1"}


def test_options_of_tasks_and_actors_are_checked() -> None:
    assert ActorOptions().lifetime is Lifetime.EPHEMERAL
    assert Lifetime("detached") is Lifetime.DETACHED

    def refuses(error, options) -> None:
        with pytest.raises(error):
            options()

    check_each(
        (
            (ValueError, lambda: TaskOptions(max_calls=-1)),
            (ValueError, lambda: TaskOptions(max_retries=-1)),
            (TypeError, lambda: TaskOptions(max_retries=True)),
            (ValueError, lambda: ActorOptions(max_concurrency=0)),
            (TypeError, lambda: ActorOptions(max_concurrency=1.5)),
            (ValueError, lambda: ActorOptions(get_if_exists=True)),
            (ValueError, lambda: ActorOptions(max_concurrency=2**70)),
            (TypeError, lambda: ActorOptions(name="a", get_if_exists=1)),
            (TypeError, lambda: ActorOptions(name=7)),
            (TypeError, lambda: TaskOptions(name=Path("x"))),
            (ValueError, lambda: TaskOptions(name="\ud800")),
            (ValueError, lambda: RuntimeEnv(env={"A": "\ud800"})),
        ),
        refuses,
    )
