"""The cost of logs: ingesting, following, reading, searching and storing lines."""
