"""Every page. Mounted at the root, after REST and health."""

from __future__ import annotations

from django.urls import path

from jobs.web.account import settings_pages, sign_in
from jobs.web.administration import quota_pages, sharing_pages, user_pages
from jobs.web.base import live
from jobs.web.clusters import machines_page
from jobs.web.jobs import (
    array_pages,
    bulk_pages,
    charts_tab,
    job_actions,
    job_pages,
    nodes_tab,
    plan_part,
    schedule_pages,
    stacks_tab,
    submit_page,
    table_page,
    table_stream,
    terminal_page,
    view_pages,
)
from jobs.web.overview import overview_page, overview_stream
from jobs.web.projects import member_pages, project_pages, secret_pages
from jobs.web.queue import queue_page
from jobs.web.templates import template_pages
from jobs.web.usage import usage_page

app_name = "web"

_SCHEDULE = "<slug:slug>/schedules/<slug:schedule_name>"
_JOB = "<slug:slug>/jobs/<int:job_id>"
_ARRAY = "<slug:slug>/arrays/<int:array_id>"

urlpatterns = [
    path("", overview_page.landing, name="landing"),
    path("sign-in", sign_in.SignInView.as_view(), name="sign_in"),
    path("sign-in/once/<str:secret>", sign_in.sign_in_once, name="sign_in_once"),
    path("sign-out", sign_in.sign_out, name="sign_out"),
    path("settings/tokens", settings_pages.tokens, name="tokens"),
    path("settings/tokens/<int:token_id>/revoke", settings_pages.revoke, name="revoke"),
    path("settings/password", settings_pages.password, name="password"),
    path("settings/sessions", user_pages.own_sessions, name="sessions"),
    path("settings/sessions/end", user_pages.end_own, name="end_own_sessions"),
    path("settings/users", user_pages.users, name="users"),
    path("settings/users/<str:username>", user_pages.user, name="user"),
    path("settings/users/<str:username>/change", user_pages.change, name="change_user"),
    path("settings/users/<str:username>/sessions/end", user_pages.end, name="end_sessions"),
    path("settings/queues", sharing_pages.queues, name="admin_queues"),
    path("settings/queues/<slug:name>", sharing_pages.queues, name="admin_queue"),
    path("settings/queues/<slug:name>/delete", sharing_pages.remove_queue, name="delete_queue"),
    path("settings/pools", sharing_pages.pools, name="admin_pools"),
    path("settings/pools/<slug:name>", sharing_pages.pools, name="admin_pool"),
    path("settings/pools/<slug:name>/delete", sharing_pages.remove_pool, name="delete_pool"),
    path("settings/quotas", quota_pages.quotas, name="admin_quotas"),
    path("settings/quotas/<int:quota_id>", quota_pages.quota, name="admin_quota"),
    path("settings/quotas/<int:quota_id>/delete", quota_pages.remove_quota, name="delete_quota"),
    path("settings/all-projects", quota_pages.projects, name="admin_projects"),
    path("settings/all-projects/<slug:slug>/weight", quota_pages.weight, name="set_weight"),
    path("settings/theme", settings_pages.theme, name="theme"),
    path("settings/projects", project_pages.all_projects, name="all_projects"),
    path("settings/machines", machines_page.all_page, name="all_machines"),
    path("settings/machines/live", machines_page.all_live, name="all_machines_live"),
    path("settings/machines/stream", machines_page.all_stream, name="all_machines_stream"),
    path("settings/machines/down", machines_page.any_down, name="any_cluster_down"),
    path("settings/clusters", machines_page.old_address, name="old_all_clusters"),
    path("settings/overview/live", overview_page.all_live, name="overview_all_live"),
    path("settings/overview/stream", overview_stream.all_stream, name="overview_all_stream"),
    path("<slug:slug>", overview_page.page, name="project"),
    path("<slug:slug>/overview/live", overview_page.live, name="overview_live"),
    path("<slug:slug>/overview/stream", overview_stream.project_stream, name="overview_stream"),
    path("<slug:slug>/machines", machines_page.page, name="machines"),
    path("<slug:slug>/machines/live", machines_page.live, name="machines_live"),
    path("<slug:slug>/machines/stream", machines_page.stream, name="machines_stream"),
    path("<slug:slug>/machines/extend", machines_page.extend, name="cluster_extend"),
    path("<slug:slug>/machines/stop", machines_page.stop, name="cluster_stop"),
    path("<slug:slug>/machines/down", machines_page.down, name="cluster_down"),
    path("<slug:slug>/clusters", machines_page.old_address, name="old_clusters"),
    path("<slug:slug>/infra", machines_page.old_address, name="old_infra"),
    path("<slug:slug>/usage", usage_page.page, name="usage"),
    path("<slug:slug>/queue", queue_page.page, name="queue"),
    path("<slug:slug>/queue/live", queue_page.live, name="queue_live"),
    path("<slug:slug>/queue/stream", live.queue_stream, name="queue_stream"),
    path("<slug:slug>/members", member_pages.members, name="members"),
    path("<slug:slug>/members/role", member_pages.change_role, name="change_role"),
    path("<slug:slug>/members/remove", member_pages.remove, name="remove_member"),
    path("<slug:slug>/settings", project_pages.settings, name="settings"),
    path("<slug:slug>/settings/laptops", project_pages.laptops, name="allow_laptops"),
    path("<slug:slug>/settings/archive", project_pages.archive, name="archive_project"),
    path("<slug:slug>/settings/unarchive", project_pages.unarchive, name="unarchive_project"),
    path("<slug:slug>/settings/delete", project_pages.delete, name="delete_project"),
    path("<slug:slug>/secrets", secret_pages.secrets, name="secrets"),
    path("<slug:slug>/secrets/delete", secret_pages.delete, name="delete_secret"),
    path("<slug:slug>/schedules", schedule_pages.schedules, name="schedules"),
    path("<slug:slug>/new-schedule", schedule_pages.new, name="new_schedule"),
    path(_SCHEDULE, schedule_pages.page, name="schedule"),
    path(f"{_SCHEDULE}/pause", schedule_pages.pause, name="pause_schedule"),
    path(f"{_SCHEDULE}/resume", schedule_pages.resume, name="resume_schedule"),
    path(f"{_SCHEDULE}/run", schedule_pages.run, name="run_schedule"),
    path(f"{_SCHEDULE}/delete", schedule_pages.delete, name="delete_schedule"),
    path("<slug:slug>/templates", template_pages.templates, name="templates"),
    path("<slug:slug>/new-template", template_pages.edit, name="edit_template"),
    path("<slug:slug>/templates/<slug:template_name>", template_pages.page, name="template"),
    path(
        "<slug:slug>/templates/<slug:template_name>/delete",
        template_pages.delete,
        name="delete_template",
    ),
    path("<slug:slug>/jobs", table_page.job_table_page, name="jobs"),
    path("<slug:slug>/jobs/stream", table_stream.job_table_stream, name="jobs_stream"),
    path("<slug:slug>/jobs/live", table_page.live, name="jobs_live"),
    path("<slug:slug>/jobs/bulk", bulk_pages.bulk, name="bulk"),
    path("<slug:slug>/jobs/bulk/done", bulk_pages.done, name="bulk_done"),
    path("<slug:slug>/jobs/views", view_pages.save, name="save_view"),
    path("<slug:slug>/jobs/views/delete", view_pages.delete, name="delete_view"),
    path("<slug:slug>/jobs/new", submit_page.submit, name="submit"),
    path("<slug:slug>/jobs/plan", plan_part.plan, name="plan"),
    path(_ARRAY, array_pages.page, name="array"),
    path(f"{_ARRAY}/live", array_pages.live, name="array_live"),
    path(f"{_ARRAY}/cancel", array_pages.cancel, name="array_cancel"),
    path(f"{_ARRAY}/rerun-failed", array_pages.rerun, name="array_rerun_failed"),
    path(_JOB, job_pages.page, name="job"),
    path(f"{_JOB}/live", job_pages.live, name="job_live"),
    path(f"{_JOB}/charts/live", charts_tab.live, name="job_charts_live"),
    path(f"{_JOB}/log-at", charts_tab.log_at, name="job_log_at"),
    path(f"{_JOB}/nodes/live", nodes_tab.live, name="job_nodes_live"),
    path(f"{_JOB}/stacks/ask", stacks_tab.ask, name="stacks"),
    path(f"{_JOB}/cancel", job_actions.cancel, name="cancel"),
    path(f"{_JOB}/hold", job_actions.hold, name="hold"),
    path(f"{_JOB}/release", job_actions.release, name="release"),
    path(f"{_JOB}/prioritize", job_actions.prioritize, name="prioritize"),
    path(f"{_JOB}/extend", job_actions.extend, name="extend"),
    path(f"{_JOB}/rerun", job_actions.rerun, name="rerun"),
    path(
        f"{_JOB}/sessions/<int:session_id>/end", job_actions.end_gateway_session, name="end_session"
    ),
    path(f"{_JOB}/delete", job_actions.delete, name="delete"),
    path(f"{_JOB}/terminal", terminal_page.page, name="terminal"),
    path(f"{_JOB}/terminal/ticket", terminal_page.ticket, name="terminal_ticket"),
    path(f"{_JOB}/<str:tab>", job_pages.page, name="job_tab"),
]
