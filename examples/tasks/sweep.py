"""A parameter sweep: fits a polynomial with 40 settings, and prints the best one.

python sweep.py            on this machine
"""

from __future__ import annotations

import itertools
import sys
from typing import NamedTuple

import numpy as np
from hosts import open_context, options

from monarch_client.context import TaskOptions

DEGREES = range(1, 11)
PENALTIES = (1e-6, 1e-3, 1e-1, 10.0)


class Samples(NamedTuple):
    """Points to learn from, and points to check with."""

    train_x: np.ndarray
    train_y: np.ndarray
    check_x: np.ndarray
    check_y: np.ndarray


class Result(NamedTuple):
    """The mean squared error of one setting."""

    error: float
    degree: int
    penalty: float


def samples() -> Samples:
    """Return noisy values of a cubic polynomial."""
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 40_000)
    y = 3 * x**3 - 2 * x + 0.5 + random.normal(0, 0.1, len(x))
    return Samples(x[:60], y[:60], x[60:], y[60:])


def fit(data: Samples, degree: int, penalty: float) -> Result:
    """Fit with one setting; return its error."""
    train = np.vander(data.train_x, degree + 1)
    weights = np.linalg.solve(
        train.T @ train + penalty * np.eye(degree + 1), train.T @ data.train_y
    )
    error = np.vander(data.check_x, degree + 1) @ weights - data.check_y
    return Result(float(np.mean(error**2)), degree, penalty)


def main() -> int:
    """Return 0 when the sweep has found what a loop in this process finds."""
    arguments = options(__doc__).parse_args()
    data = samples()
    settings = list(itertools.product(DEGREES, PENALTIES))
    with open_context(arguments.mesh) as context:
        shared = context.put(data)  # once, and not with each task
        running = [
            context.create_task(fit, (shared, *setting), options=TaskOptions(name=f"fit {setting}"))
            for setting in settings
        ]
        best = Result(float("inf"), 0, 0.0)
        count = 0
        while running:
            done, running = context.wait(running)  # the first that is ready
            count += 1
            result = context.get(done[0])
            if result < best:
                best = result
                print(f"{count}: degree {best.degree}, penalty {best.penalty:g}: {best.error:.6f}")
    print(f"best of {count} settings: degree {best.degree}, penalty {best.penalty:g}")
    return 0 if best == min(fit(data, *setting) for setting in settings) else 1


if __name__ == "__main__":
    sys.exit(main())
