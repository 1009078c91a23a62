"""The range of `portal.priority`. The command line reads it without the rest of the keys."""

LOWEST_PRIORITY, HIGHEST_PRIORITY = 0, 100
