"""A parameter server: an actor has the weights, and workers send it gradients as they have them.

python parameter_server.py            on this machine
"""

from __future__ import annotations

import sys

import numpy as np
from hosts import open_context, options

from monarch_client.context import ActorOptions, ObjectRef

WORKERS = 3
STEPS = 300
BATCH = 256
TOLERANCE = 0.05
TRUE_WEIGHTS = np.linspace(-2.0, 2.0, 16)


class ParameterServer:
    """The weights of a linear model."""

    def __init__(self, size: int, rate: float) -> None:
        self.weights = np.zeros(size)
        self.rate = rate

    def apply(self, gradient: np.ndarray) -> np.ndarray:
        """Change the weights by one gradient; return them."""
        self.weights = self.weights - self.rate * gradient
        return self.weights


class Worker:
    """Computes gradients from a stream of samples of its own."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return the gradient of the mean squared error of one batch."""
        x = self.random.normal(size=(BATCH, len(weights)))
        y = x @ TRUE_WEIGHTS + self.random.normal(0, 0.01, BATCH)
        return 2 * x.T @ (x @ weights - y) / BATCH


def main() -> int:
    """Return 0 when the server has learned the weights."""
    arguments = options(__doc__).parse_args()
    options_of_server = ActorOptions(name="parameters")
    with open_context(arguments.mesh) as context:
        server = context.create_actor(
            ParameterServer, (len(TRUE_WEIGHTS), 0.05), options=options_of_server
        )
        workers = [context.create_actor(Worker, (seed,)) for seed in range(WORKERS)]
        start = context.put(np.zeros(len(TRUE_WEIGHTS)))
        # A worker starts from the newest weights, and waits for no other worker. The program has
        # only references: gradients and weights go from actor to actor.
        running: dict[ObjectRef, int] = {}
        for number, worker in enumerate(workers):
            running[worker.gradient(start)] = number
        steps = [0] * WORKERS
        weights = start
        for _ in range(STEPS):
            (gradient,), _ = context.wait(list(running))
            number = running.pop(gradient)
            steps[number] += 1
            weights = server.apply(gradient)
            running[workers[number].gradient(weights)] = number
        error = float(np.abs(context.get(weights) - TRUE_WEIGHTS).max())
    print(f"gradients of each worker: {steps}")
    print(f"after {sum(steps)} gradients the greatest error of a weight is {error:.4f}")
    return 0 if error < TOLERANCE and all(steps) else 1


if __name__ == "__main__":
    sys.exit(main())
