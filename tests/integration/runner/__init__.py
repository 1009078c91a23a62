"""Real runners: processes, sockets, Monarch workers, and a portal that only takes frames."""
