"""The vocabulary of the life cycle: every status and reason, and which ending a reason leads to."""

from __future__ import annotations

from django.db.models import TextChoices

from monarch_client.runner.vocabulary import carriers, reasons, stages, worker_states


class JobStatus(TextChoices):
    """The status of a job. The edges between statuses are in `jobs.lifecycle`."""

    QUEUED = "QUEUED", "Queued"
    PROVISIONING = "PROVISIONING", "Provisioning"
    SETTING_UP = "SETTING_UP", "Setting up"
    RUNNING = "RUNNING", "Running"
    RECOVERING = "RECOVERING", "Recovering"
    STOPPING = "STOPPING", "Stopping"
    SUCCEEDED = "SUCCEEDED", "Succeeded"
    FAILED = "FAILED", "Failed"
    CANCELLED = "CANCELLED", "Cancelled"

    @property
    def is_final(self) -> bool:
        """Whether a job never leaves this status."""
        return self in FINAL_STATUSES


FINAL_STATUSES = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED})
ACTIVE_STATUSES = frozenset(JobStatus) - FINAL_STATUSES - {JobStatus.QUEUED}


class WaitReason(TextChoices):
    """The reason for which a QUEUED job waits; never a status of its own."""

    HELD = "HELD", "Held by a user"
    DEPENDENCY = "DEPENDENCY", "Waits for another job"
    PARALLEL = "PARALLEL", "Waits for jobs of its array"
    QUOTA = "QUOTA", "Over a quota"
    CAPACITY = "CAPACITY", "No free capacity"
    BUDGET = "BUDGET", "Over a budget"
    SCHEDULE = "SCHEDULE", "Waits for its time"
    BACKOFF = "BACKOFF", "Tries again shortly"
    PREEMPTED = "PREEMPTED", "Preempted, starts again"


class StopReason(TextChoices):
    """The cause of an attempt's or a job's end. It determines the final status."""

    COMPLETED = reasons.COMPLETED, "Completed"
    USER_CODE = reasons.USER_CODE, "The program failed"
    SETUP = reasons.SETUP, "Setup failed"
    NO_CAPACITY = "NO_CAPACITY", "No capacity"
    WORKER_LOST = reasons.WORKER_LOST, "A worker was lost"
    WORKER_NEVER_READY = reasons.WORKER_NEVER_READY, "A worker never listened"
    PYTHON_MISMATCH = reasons.PYTHON_MISMATCH, "Python versions differ"
    MONARCH = reasons.MONARCH, "Monarch reported a fault"
    TIMEOUT = "TIMEOUT", "Ran too long"
    OOM = reasons.OOM, "Out of memory"
    BUDGET = "BUDGET", "Budget spent"
    IDLE = "IDLE", "Idle"
    CANCELLED_BY_USER = reasons.CANCELLED_BY_USER, "Cancelled by a user"
    PREEMPTED = "PREEMPTED", "Preempted"
    DEPENDENCY = "DEPENDENCY", "A dependency failed"
    PARENT = "PARENT", "Its parent ended"
    BACKEND = "BACKEND", "The backend failed"
    LOG_POLICY = "LOG_POLICY", "A line of its log ended it"

    @property
    def final_status(self) -> JobStatus:
        """The status this reason leads to once everything is stopped."""
        return _FINAL_STATUS_OF_REASON.get(self, JobStatus.FAILED)


_FINAL_STATUS_OF_REASON = {
    StopReason.COMPLETED: JobStatus.SUCCEEDED,
    StopReason.CANCELLED_BY_USER: JobStatus.CANCELLED,
    StopReason.IDLE: JobStatus.CANCELLED,
    StopReason.PARENT: JobStatus.CANCELLED,
    # A preempted job goes back to its queue: it has not ended.
    StopReason.PREEMPTED: JobStatus.QUEUED,
}
# Endings that a user or a policy requested.
PURPOSES = frozenset(
    {
        StopReason.CANCELLED_BY_USER,
        StopReason.IDLE,
        StopReason.PARENT,
        StopReason.PREEMPTED,
    }
)
RETRYABLE_REASONS = frozenset({StopReason.USER_CODE, StopReason.SETUP, StopReason.OOM})
RECOVERABLE_REASONS = frozenset({StopReason.WORKER_LOST})


class WorkerStatus(TextChoices):
    """The status of one host of an attempt."""

    PENDING = "PENDING", "Pending"
    SETTING_UP = worker_states.SETTING_UP, "Setting up"
    READY = worker_states.READY, "Listening"
    RUNNING = worker_states.RUNNING, "Running"
    EXITED = worker_states.EXITED, "Exited"
    LOST = worker_states.LOST, "Lost"
    UNKNOWN = "UNKNOWN", "Unknown"


class ClusterStatus(TextChoices):
    """The status of a cluster."""

    STARTING = "STARTING", "Starting"
    UP = "UP", "Up"
    STOPPED = "STOPPED", "Stopped, disks kept"
    STOPPING = "STOPPING", "Terminating"
    GONE = "GONE", "Terminated"


class StrayKind(TextChoices):
    """The owner that the name of a cluster without a row shows."""

    OWN = "own", "This portal, no project"
    FOREIGN = "foreign", "Another owner"


class Carrier(TextChoices):
    """The way in which an attempt's frames reach the portal."""

    PUSH = carriers.PUSH, "Pushed by the runner"
    PULL = carriers.PULL, "Fetched by the portal"


class OnSpent(TextChoices):
    """The consequence for a project whose monthly budget is used up."""

    WARN = "warn", "Warn only"
    HOLD = "hold", "Start no more jobs"
    STOP = "stop", "Stop running jobs, too"


class UsageBy(TextChoices):
    """The dimension by which usage is added up."""

    USER = "user", "Person"
    JOB = "job", "Job"
    DAY = "day", "Day"


class LogStore(TextChoices):
    """The store of a sealed chunk of a log."""

    FILES = "files", "Files on the portal's machine"
    S3 = "s3", "S3 bucket"


class StackState(TextChoices):
    """The state of a stack dump."""

    REQUESTED = "asked", "Requested"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class StageName(TextChoices):
    """The stages of one attempt, in the order in which they happen, in the words of statuses."""

    LAUNCH = "launch", JobStatus.PROVISIONING.label
    SETUP = stages.SETUP, JobStatus.SETTING_UP.label
    WORKERS = stages.WORKERS, "Starting workers"
    RUN = stages.RUN, JobStatus.RUNNING.label
    TEARDOWN = stages.TEARDOWN, ClusterStatus.STOPPING.label


class Role(TextChoices):
    """A member's role in a project; each includes the ones before it."""

    VIEWER = "viewer", "Viewer"
    MEMBER = "member", "Member"
    MAINTAINER = "maintainer", "Maintainer"
    ADMIN = "admin", "Admin"


class ProjectState(TextChoices):
    """The state of a project: it takes jobs, is read-only, or only its records are left."""

    ACTIVE = "active", "Active"
    ARCHIVED = "archived", "Archived"
    DELETED = "deleted", "Deleted"


class JobKind(TextChoices):
    """The meaning of `run`: the driver, once; or a command on every node."""

    MONARCH = "monarch", "Monarch job"
    PLAIN = "plain", "Plain job"


class TemplateScope(TextChoices):
    """The projects that can use a template."""

    PROJECT = "project", "This project"
    INSTALLATION = "installation", "All projects"
    BUILT_IN = "built-in", "Built in"


class HourFormat(TextChoices):
    """The hours of a clock as pages show them to a user."""

    AUTOMATIC = "", "Automatic"
    FULL_DAY = "24", "24 hours"
    HALF_DAY = "12", "12 hours"


class OverlapPolicy(TextChoices):
    """The policy of a schedule whose time has come while a job that it made has not ended."""

    ALLOW = "allow", "Run both"
    SKIP = "skip", "Skip this run"
    REPLACE = "replace", "Cancel the last job and run"


class CatchUpPolicy(TextChoices):
    """The policy of a schedule for times at which the portal was down."""

    NONE = "none", "Skip them"
    LATEST = "latest", "Run once"
    ALL = "all", "Run each of them"


class ScheduleOutcome(TextChoices):
    """The outcome of one time of a schedule."""

    SUBMITTED = "submitted", "Submitted"
    SKIPPED = "skipped", "Skipped: the last job still ran"
    MISSED = "missed", "Missed"
    FAILED = "failed", "Could not be submitted"


class LogAction(TextChoices):
    """The action of a log policy when a line matches its pattern."""

    ANNOTATE = "annotate", "Note the line in the job's history"
    FAIL = "fail", "End the job as failed"
    NO_RETRY = "no_retry", "Do not retry the job after this attempt"
    EXCLUDE_NODE = "exclude_node", "Exclude the node from later attempts"


class GatewayKind(TextChoices):
    """The kind of a laptop's session in a job."""

    ATTACH = "attach", "Program"
    SSH = "ssh", "Shell"
    SYNC = "sync", "Code"


class GatewayState(TextChoices):
    """The state of a laptop's session in a job."""

    OPENING = "opening", "Opening"
    OPEN = "open", "Attached"
    AWAY = "away", "Away"
    CLOSED = "closed", "Closed"
    LOST = "lost", "Lost"


class EventKind(TextChoices):
    """The kind of an event in a job's history."""

    STATUS = "status", "Status"
    ACTION = "action", "Action"
    NOTE = "note", "Note"


# The verb of the note that a log policy writes about a line.
LOG_POLICY = "log_policy"
# The verb of the note that holds a runner's evidence of a failure.
EVIDENCE = "evidence"
# The verb of the note that a job has used most of its budget.
BUDGET = "budget"
