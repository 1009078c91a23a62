"""The stop reasons that a runner reports. The portal knows further ones: `jobs.statuses`."""

COMPLETED = "COMPLETED"
USER_CODE = "USER_CODE"
SETUP = "SETUP"
WORKER_LOST = "WORKER_LOST"
WORKER_NEVER_READY = "WORKER_NEVER_READY"
PYTHON_MISMATCH = "PYTHON_MISMATCH"
MONARCH = "MONARCH"
OOM = "OOM"
CANCELLED_BY_USER = "CANCELLED_BY_USER"

REASONS = frozenset(
    {
        COMPLETED,
        USER_CODE,
        SETUP,
        WORKER_LOST,
        WORKER_NEVER_READY,
        PYTHON_MISMATCH,
        MONARCH,
        OOM,
        CANCELLED_BY_USER,
    }
)
