"""The tables: one for each module, with its QuerySet."""

from jobs.models.api_token import ApiToken
from jobs.models.attempt import Attempt
from jobs.models.attempt_stage import AttemptStage
from jobs.models.audit_entry import AuditEntry
from jobs.models.budget import Budget
from jobs.models.budget_notice import BudgetNotice
from jobs.models.cluster import Cluster
from jobs.models.expected_price import ExpectedPrice
from jobs.models.follow_lease import FollowLease
from jobs.models.former_slug import FormerSlug
from jobs.models.gateway_head import GatewayHead
from jobs.models.gateway_session import GatewaySession
from jobs.models.gpu_use import GpuUse
from jobs.models.handed_secrets import HandedSecrets
from jobs.models.host_metrics import HostMetrics
from jobs.models.idempotency_key import IdempotencyKey
from jobs.models.installation import Installation
from jobs.models.job import Job
from jobs.models.job_array import JobArray
from jobs.models.job_code import JobCode
from jobs.models.job_dependency import JobDependency
from jobs.models.job_event import JobEvent
from jobs.models.log_block import LogBlock
from jobs.models.log_chunk import LogChunk
from jobs.models.log_head import LogHead
from jobs.models.log_watch import LogWatch
from jobs.models.membership import Membership
from jobs.models.mesh_tree import MeshTree
from jobs.models.plan_pass import PlanPass
from jobs.models.pool import Pool
from jobs.models.program_series import ProgramSeries
from jobs.models.project import Project
from jobs.models.project_secret import ProjectSecret
from jobs.models.queue import Queue
from jobs.models.quota import Quota
from jobs.models.saved_view import SavedView
from jobs.models.schedule import Schedule
from jobs.models.schedule_run import ScheduleRun
from jobs.models.settled_use import SettledUse
from jobs.models.sign_in_link import SignInLink
from jobs.models.stack_dump import StackDump
from jobs.models.stray_cluster import StrayCluster
from jobs.models.task_report import TaskReport
from jobs.models.template_version import TemplateVersion
from jobs.models.upload import Upload
from jobs.models.use_account import UseAccount
from jobs.models.user import User
from jobs.models.user_session import UserSession
from jobs.models.worker import Worker

__all__ = [
    "ApiToken",
    "Attempt",
    "AttemptStage",
    "AuditEntry",
    "Budget",
    "BudgetNotice",
    "Cluster",
    "ExpectedPrice",
    "FollowLease",
    "FormerSlug",
    "GatewayHead",
    "GatewaySession",
    "GpuUse",
    "HandedSecrets",
    "HostMetrics",
    "IdempotencyKey",
    "Installation",
    "Job",
    "JobArray",
    "JobCode",
    "JobDependency",
    "JobEvent",
    "LogBlock",
    "LogChunk",
    "LogHead",
    "LogWatch",
    "Membership",
    "MeshTree",
    "PlanPass",
    "Pool",
    "ProgramSeries",
    "Project",
    "ProjectSecret",
    "Queue",
    "Quota",
    "SavedView",
    "Schedule",
    "ScheduleRun",
    "SettledUse",
    "SignInLink",
    "StackDump",
    "StrayCluster",
    "TaskReport",
    "TemplateVersion",
    "Upload",
    "UseAccount",
    "User",
    "UserSession",
    "Worker",
]
