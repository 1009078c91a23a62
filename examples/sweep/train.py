"""Print the values of this job of the array."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
values = parser.parse_args()
print(f"lr {values.lr}, seed {values.seed}")
