"""Every address of the API. Mounted at /api/v1."""

from __future__ import annotations

from django.urls import path, re_path, register_converter

from jobs.api import proof_view, schema_views
from jobs.api.account import me_view, token_views, user_views
from jobs.api.base.errors import not_found_view
from jobs.api.base.names import NameConverter
from jobs.api.clusters import cloud_views, cluster_views, infra_views
from jobs.api.jobs import (
    array_views,
    bulk_view,
    extend_views,
    gateway_views,
    graph_view,
    history_views,
    job_views,
    plan_views,
    priority_view,
    run_views,
    schedule_views,
    upload_views,
    view_views,
    why_view,
)
from jobs.api.jobs.code_view import code_view
from jobs.api.logs import log_views, mesh_view, metric_views, stacks_view, tasks_view
from jobs.api.logs.ingest_view import ingest_view
from jobs.api.logs.log_search_view import LogSearchView
from jobs.api.logs.log_stream import log_stream
from jobs.api.overview import overview_views
from jobs.api.projects import limit_view, member_views, project_views, secret_views
from jobs.api.queue import queue_views
from jobs.api.templates import template_views
from jobs.api.usage import budget_view, usage_view

app_name = "api"
register_converter(NameConverter, "name")

_PROJECT = "projects/<slug:slug>"
_JOB = f"{_PROJECT}/jobs/<int:job_id>"
_SCHEDULE = f"{_PROJECT}/schedules/<slug:schedule_name>"
_TEMPLATE = f"{_PROJECT}/templates/<slug:template_name>"
_ARRAY = f"{_PROJECT}/arrays/<int:array_id>"

urlpatterns = [
    path("proof", proof_view.ProofView.as_view(), name="proof"),
    path("me", me_view.MeView.as_view(), name="me"),
    path("projects", project_views.ProjectListView.as_view(), name="projects"),
    path(_PROJECT, project_views.ProjectDetailView.as_view(), name="project"),
    path("overview", overview_views.OverviewView.as_view(), name="overview_all"),
    path(
        f"{_PROJECT}/overview",
        overview_views.ProjectOverviewView.as_view(),
        name="overview",
    ),
    path(
        f"{_PROJECT}/actions/archive",
        project_views.ProjectArchiveView.as_view(),
        name="project_archive",
    ),
    path(
        f"{_PROJECT}/actions/unarchive",
        project_views.ProjectUnarchiveView.as_view(),
        name="project_unarchive",
    ),
    path(f"{_PROJECT}/limits", limit_view.LimitsView.as_view(), name="limits"),
    path(f"{_PROJECT}/members", member_views.MemberListView.as_view(), name="members"),
    path(
        f"{_PROJECT}/members/<name:username>",
        member_views.MemberDetailView.as_view(),
        name="member",
    ),
    path(f"{_PROJECT}/jobs", job_views.JobListView.as_view(), name="jobs"),
    path(f"{_PROJECT}/jobs/validate", job_views.JobValidateView.as_view(), name="validate"),
    path(f"{_PROJECT}/jobs/batch", array_views.JobBatchView.as_view(), name="batch"),
    path(f"{_PROJECT}/jobs/actions", bulk_view.JobBulkView.as_view(), name="bulk"),
    path(f"{_PROJECT}/history", run_views.HistoryView.as_view(), name="history"),
    path("compare", run_views.CompareView.as_view(), name="compare"),
    path(f"{_PROJECT}/views", view_views.ViewListView.as_view(), name="views"),
    path(f"{_PROJECT}/views/<int:view_id>", view_views.ViewDetailView.as_view(), name="view"),
    path(_ARRAY, array_views.ArrayView.as_view(), name="array"),
    path(f"{_ARRAY}/actions/cancel", array_views.ArrayCancelView.as_view(), name="array_cancel"),
    path(
        f"{_ARRAY}/actions/rerun-failed",
        array_views.ArrayRerunFailedView.as_view(),
        name="array_rerun_failed",
    ),
    path(_JOB, job_views.JobDetailView.as_view(), name="job"),
    path(f"{_JOB}/actions/cancel", job_views.JobCancelView.as_view(), name="cancel"),
    path(f"{_JOB}/actions/hold", job_views.JobHoldView.as_view(), name="hold"),
    path(f"{_JOB}/actions/release", job_views.JobReleaseView.as_view(), name="release"),
    path(
        f"{_JOB}/actions/prioritize", priority_view.JobPrioritizeView.as_view(), name="prioritize"
    ),
    path(f"{_JOB}/actions/extend", extend_views.JobExtendView.as_view(), name="extend"),
    path(f"{_JOB}/actions/rerun", job_views.JobRerunView.as_view(), name="rerun"),
    path(f"{_JOB}/attempts", history_views.AttemptListView.as_view(), name="attempts"),
    path(f"{_JOB}/events", history_views.EventListView.as_view(), name="events"),
    path(f"{_JOB}/logs", log_views.LogView.as_view(), name="logs"),
    path(f"{_JOB}/logs/search", LogSearchView.as_view(), name="log_search"),
    path(f"{_JOB}/logs/stream", log_stream, name="log_stream"),
    path(f"{_JOB}/logs/download", log_views.log_download, name="log_download"),
    path(f"{_JOB}/metrics", metric_views.MetricsView.as_view(), name="metrics"),
    path(
        f"{_JOB}/program-metrics",
        metric_views.ProgramMetricsView.as_view(),
        name="program_metrics",
    ),
    path(f"{_JOB}/graph", graph_view.GraphView.as_view(), name="graph"),
    path(f"{_JOB}/why", why_view.WhyView.as_view(), name="why"),
    path(f"{_JOB}/mesh", mesh_view.MeshView.as_view(), name="mesh"),
    path(f"{_JOB}/tasks", tasks_view.TasksView.as_view(), name="tasks"),
    path(
        f"{_JOB}/gateway-sessions",
        gateway_views.GatewaySessionListView.as_view(),
        name="gateway_sessions",
    ),
    path(
        f"{_JOB}/gateway-sessions/<int:session_id>",
        gateway_views.GatewaySessionView.as_view(),
        name="gateway_session",
    ),
    path(f"{_JOB}/stacks", stacks_view.StacksView.as_view(), name="stacks"),
    path(f"{_JOB}/stacks/all", stacks_view.AllStacksView.as_view(), name="all_stacks"),
    path("attempts/<int:attempt_id>/frames", ingest_view, name="frames"),
    path("attempts/<int:attempt_id>/code", code_view, name="code"),
    path(f"{_PROJECT}/uploads", upload_views.UploadListView.as_view(), name="uploads"),
    path(
        f"{_PROJECT}/uploads/<slug:digest>",
        upload_views.UploadDetailView.as_view(),
        name="upload",
    ),
    path(f"{_PROJECT}/secrets", secret_views.SecretListView.as_view(), name="secrets"),
    path(f"{_PROJECT}/secrets/<name:name>", secret_views.SecretDetailView.as_view(), name="secret"),
    path(f"{_PROJECT}/budget", budget_view.BudgetView.as_view(), name="budget"),
    path(f"{_PROJECT}/usage", usage_view.UsageView.as_view(), name="usage"),
    path(f"{_PROJECT}/schedules", schedule_views.ScheduleListView.as_view(), name="schedules"),
    path(_SCHEDULE, schedule_views.ScheduleDetailView.as_view(), name="schedule"),
    path(
        f"{_SCHEDULE}/actions/pause",
        schedule_views.SchedulePauseView.as_view(),
        name="schedule_pause",
    ),
    path(
        f"{_SCHEDULE}/actions/resume",
        schedule_views.ScheduleResumeView.as_view(),
        name="schedule_resume",
    ),
    path(f"{_SCHEDULE}/actions/run", schedule_views.ScheduleRunView.as_view(), name="schedule_run"),
    path(f"{_PROJECT}/templates", template_views.TemplateListView.as_view(), name="templates"),
    path(_TEMPLATE, template_views.TemplateDetailView.as_view(), name="template"),
    path(
        f"{_TEMPLATE}/actions/fill-in",
        template_views.TemplateFillView.as_view(),
        name="template_fill_in",
    ),
    path(
        f"{_TEMPLATE}/actions/run",
        template_views.TemplateRunView.as_view(),
        name="template_run",
    ),
    path("templates", template_views.SharedTemplateListView.as_view(), name="shared_templates"),
    path(
        "templates/<slug:template_name>",
        template_views.SharedTemplateDetailView.as_view(),
        name="shared_template",
    ),
    path(f"{_PROJECT}/plan", plan_views.PlanView.as_view(), name="plan"),
    path(f"{_PROJECT}/plan/batch", plan_views.PlanBatchView.as_view(), name="plan_batch"),
    path(f"{_PROJECT}/clusters", cluster_views.ClusterListView.as_view(), name="clusters"),
    path(
        f"{_PROJECT}/clusters/<name:cluster_name>/actions/down",
        cluster_views.ClusterDownView.as_view(),
        name="cluster_down",
    ),
    path(
        f"{_PROJECT}/clusters/<name:cluster_name>/actions/stop",
        cluster_views.ClusterStopView.as_view(),
        name="cluster_stop",
    ),
    path(
        f"{_PROJECT}/clusters/<name:cluster_name>/actions/extend",
        extend_views.ClusterExtendView.as_view(),
        name="cluster_extend",
    ),
    path("clusters", cluster_views.AllClustersView.as_view(), name="all_clusters"),
    path(
        "clusters/<name:cluster_name>/actions/down",
        cluster_views.AnyClusterDownView.as_view(),
        name="any_cluster_down",
    ),
    path("clouds", cloud_views.CloudListView.as_view(), name="clouds"),
    path("clouds/check", cloud_views.CloudCheckView.as_view(), name="cloud_check"),
    path("clouds/<name:kind>", cloud_views.CloudKindView.as_view(), name="cloud"),
    path(
        "clouds/<name:kind>/<path:name>", cloud_views.CloudEntryView.as_view(), name="cloud_entry"
    ),
    path("infra", infra_views.InfraListView.as_view(), name="infra"),
    path("pools", queue_views.PoolListView.as_view(), name="pools"),
    path("pools/<slug:name>", queue_views.PoolView.as_view(), name="pool"),
    path("queues", queue_views.QueueListView.as_view(), name="queues"),
    path("queues/<slug:name>", queue_views.QueueView.as_view(), name="queue"),
    path("queue", queue_views.WaitingView.as_view(), name="waiting"),
    path("queue/timeline", queue_views.TimelineView.as_view(), name="timeline"),
    path("quotas", queue_views.QuotaListView.as_view(), name="quotas"),
    path("quotas/<int:quota_id>", queue_views.QuotaView.as_view(), name="quota"),
    path("shares", queue_views.ShareListView.as_view(), name="shares"),
    path(f"{_PROJECT}/quotas", queue_views.ProjectQuotaListView.as_view(), name="project_quotas"),
    path(f"{_PROJECT}/weight", queue_views.WeightView.as_view(), name="weight"),
    path("tokens", token_views.TokenListView.as_view(), name="tokens"),
    path("tokens/<int:token_id>", token_views.TokenDetailView.as_view(), name="token"),
    path("users", user_views.UserListView.as_view(), name="users"),
    path("users/<name:username>", user_views.UserView.as_view(), name="user"),
    path("users/<name:username>/actions/link", user_views.UserLinkView.as_view(), name="user_link"),
    path(
        "users/<name:username>/sessions",
        user_views.SessionListView.as_view(),
        name="user_sessions",
    ),
    path(
        "users/<name:username>/sessions/<slug:session_id>",
        user_views.SessionView.as_view(),
        name="user_session",
    ),
    path("schema/job", schema_views.JobSchemaView.as_view(), name="job_schema"),
    path("openapi", schema_views.OpenApiView.as_view(), name="openapi"),
    path("docs", schema_views.docs_view, name="docs"),
    re_path(r"", not_found_view),
]
