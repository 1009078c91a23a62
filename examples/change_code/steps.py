"""A value that the notebook changes."""

RATE = 0.1
