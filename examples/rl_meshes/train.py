"""Reinforcement learning in small: a trainer learns a number from guesses and their scores.

The driver requests the generators' nodes when it needs them, and releases them before it ends.
"""

from __future__ import annotations

import random
import sys

from monarch.actor import Actor, current_rank, endpoint
from mportal_runtime import meshes, request_mesh

TARGET = 42.0
STEPS = 12


class Reward(Actor):
    """Scores guesses: nobody else knows the target."""

    @endpoint
    def score(self, guesses: list[float]) -> list[float]:
        """Return a score for each guess; 0 is the best."""
        return [-abs(TARGET - guess) for guess in guesses]


class Generator(Actor):
    """Guesses with the policy that it is given."""

    def __init__(self) -> None:
        self.random = random.Random(current_rank().rank)

    @endpoint
    def rollout(self, mean: float, spread: float, count: int) -> list[float]:
        """Return `count` guesses around the mean."""
        return [self.random.gauss(mean, spread) for _ in range(count)]


class Trainer(Actor):
    """Holds the policy, the mean and the spread of the guesses, and improves it."""

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self.mean = 0.0
        self.spread = 32.0

    @endpoint
    def step(self, generators: Generator, count: int) -> tuple[int, float]:
        """Learn from guesses of each generator; return their number and the best score."""
        rollouts = generators.rollout.call(self.mean, self.spread, count).get(timeout=60)
        guesses = [guess for rollout in rollouts.values() for guess in rollout]
        scores = self.reward.score.call_one(guesses).get(timeout=60)
        ranked = sorted(zip(scores, guesses, strict=True), reverse=True)
        best = [guess for _, guess in ranked[: len(ranked) // 4]]
        self.mean = sum(best) / len(best)
        self.spread *= 0.7
        return len(guesses), ranked[0][0]

    @endpoint
    def policy(self) -> float:
        """Return the mean of the guesses."""
        return self.mean


def main() -> int:
    """Return 0 when the trainer has learned the target."""
    procs = meshes.trainers.spawn_procs(per_host={"procs": 2})
    reward = procs.slice(procs=0).spawn("reward", Reward)
    trainer = procs.slice(procs=1).spawn("trainer", Trainer, reward)

    with request_mesh("generators", hosts=2, timeout=300) as mesh:
        print(f"job {mesh.job} is the mesh {mesh.name!r}: {mesh.url}")
        generators = mesh.spawn_procs().spawn("generators", Generator)
        for step in range(STEPS):
            # The trainer calls the generators itself, over the network of the two jobs.
            count, best = trainer.step.call_one(generators, 32).get(timeout=60)
            print(f"step {step}: {count} guesses, best score {best:.3f}")

    mean = trainer.policy.call_one().get(timeout=60)
    print(f"the generators are released; the trainer says {mean:.2f}")
    return 0 if abs(mean - TARGET) < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
