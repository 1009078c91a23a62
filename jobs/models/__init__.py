"""The tables, one a file, each with its QuerySet beside it."""

from jobs.models.api_token import ApiToken
from jobs.models.attempt import Attempt
from jobs.models.attempt_stage import AttemptStage
from jobs.models.cluster import Cluster
from jobs.models.follow_lease import FollowLease
from jobs.models.handed_secrets import HandedSecrets
from jobs.models.host_metrics import HostMetrics
from jobs.models.idempotency_key import IdempotencyKey
from jobs.models.installation import Installation
from jobs.models.job import Job
from jobs.models.job_event import JobEvent
from jobs.models.log_block import LogBlock
from jobs.models.log_chunk import LogChunk
from jobs.models.log_head import LogHead
from jobs.models.log_watch import LogWatch
from jobs.models.membership import Membership
from jobs.models.mesh_tree import MeshTree
from jobs.models.project import Project
from jobs.models.project_secret import ProjectSecret
from jobs.models.sign_in_link import SignInLink
from jobs.models.stray_cluster import StrayCluster
from jobs.models.upload import Upload
from jobs.models.user import User
from jobs.models.worker import Worker

__all__ = [
    "ApiToken",
    "Attempt",
    "AttemptStage",
    "Cluster",
    "FollowLease",
    "HandedSecrets",
    "HostMetrics",
    "IdempotencyKey",
    "Installation",
    "Job",
    "JobEvent",
    "LogBlock",
    "LogChunk",
    "LogHead",
    "LogWatch",
    "Membership",
    "MeshTree",
    "Project",
    "ProjectSecret",
    "SignInLink",
    "StrayCluster",
    "Upload",
    "User",
    "Worker",
]
