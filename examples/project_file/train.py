"""A program whose folder says what it needs: `mportal run train.py --rate 0.1` takes no flags."""

from __future__ import annotations

import argparse
import os


def main() -> None:
    """Fit the mean of two numbers, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=0.5, help="how far each step goes")
    rate = parser.parse_args().rate
    guess = 0.0
    for _ in range(int(os.environ["EPOCHS"])):
        guess += rate * (3.0 - guess)
    print(f"node {os.environ['SKYPILOT_NODE_RANK']}: {guess:.3f}")


if __name__ == "__main__":
    main()
