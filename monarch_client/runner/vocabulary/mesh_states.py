"""The states of hosts, procs and actors in a mesh tree."""

# Not even the mesh admin knows the state of these.
UNKNOWN = "unknown"
UP, ENDED, UNREACHABLE = "up", "ended", "unreachable"
ALIVE, DEAD, POISONED = "alive", "dead", "poisoned"
RUNNING, FAILED, STOPPED = "running", "failed", "stopped"

HOST_STATES = (UP, ENDED, UNREACHABLE, UNKNOWN)
PROC_STATES = (ALIVE, DEAD, POISONED, UNKNOWN)
ACTOR_STATES = (RUNNING, FAILED, STOPPED, UNKNOWN)

HEALTHY = frozenset({UP, ENDED, ALIVE, RUNNING, STOPPED})
FAILING = frozenset({UNREACHABLE, DEAD, POISONED, FAILED})
# Failures that no actor reports: the process or the host is gone.
LOST = frozenset({UNREACHABLE, DEAD})
