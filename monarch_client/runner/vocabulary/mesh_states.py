"""The states of hosts, procs and actors in a mesh tree."""

# Not even the mesh admin knows the state of these.
UNKNOWN = "unknown"
UP, ENDED, UNREACHABLE = "up", "ended", "unreachable"
ALIVE, DEAD, SILENT, POISONED = "alive", "dead", "silent", "poisoned"
RUNNING, FAILED, STOPPED = "running", "failed", "stopped"

HOST_STATES = (UP, ENDED, UNREACHABLE, UNKNOWN)
PROC_STATES = (ALIVE, DEAD, SILENT, POISONED, UNKNOWN)
ACTOR_STATES = (RUNNING, FAILED, STOPPED, UNKNOWN)

HEALTHY = frozenset({UP, ENDED, ALIVE, RUNNING, STOPPED})
FAILING = frozenset({UNREACHABLE, DEAD, SILENT, POISONED, FAILED})
# Failures that no actor reports: the process or the host has ended, or does not answer.
LOST = frozenset({UNREACHABLE, DEAD, SILENT})
