"""The states of a worker that a runner reports. The portal adds PENDING and UNKNOWN."""

SETTING_UP, READY, RUNNING = "SETTING_UP", "READY", "RUNNING"
EXITED, LOST = "EXITED", "LOST"
WORKER_STATES = (SETTING_UP, READY, RUNNING, EXITED, LOST)
