"""Every page. Mounted at the root, after REST and health."""

from __future__ import annotations

from django.urls import path

from jobs.web import (
    cluster_pages,
    hosts_tab,
    infra_page,
    job_actions,
    job_pages,
    landing,
    live,
    member_pages,
    mesh_tab,
    plan_part,
    secret_pages,
    settings_pages,
    sign_in,
    submit_page,
    table_page,
)

app_name = "web"

_JOB = "<slug:slug>/jobs/<int:job_id>"

urlpatterns = [
    path("", landing.landing, name="landing"),
    path("sign-in", sign_in.SignInView.as_view(), name="sign_in"),
    path("sign-in/once/<str:secret>", sign_in.sign_in_once, name="sign_in_once"),
    path("sign-out", sign_in.sign_out, name="sign_out"),
    path("settings/tokens", settings_pages.tokens, name="tokens"),
    path("settings/tokens/<int:token_id>/revoke", settings_pages.revoke, name="revoke"),
    path("settings/password", settings_pages.password, name="password"),
    path("settings/theme", settings_pages.theme, name="theme"),
    path("settings/clusters", cluster_pages.all_clusters, name="all_clusters"),
    path("settings/clusters/live", cluster_pages.all_live, name="all_clusters_live"),
    path("settings/clusters/down", cluster_pages.any_down, name="any_cluster_down"),
    path("<slug:slug>", landing.project, name="project"),
    path("<slug:slug>/clusters", cluster_pages.clusters, name="clusters"),
    path("<slug:slug>/clusters/live", cluster_pages.live, name="clusters_live"),
    path("<slug:slug>/clusters/extend", cluster_pages.extend, name="cluster_extend"),
    path("<slug:slug>/clusters/down", cluster_pages.down, name="cluster_down"),
    path("<slug:slug>/infra", infra_page.page, name="infra"),
    path("<slug:slug>/infra/live", infra_page.live, name="infra_live"),
    path("<slug:slug>/members", member_pages.members, name="members"),
    path("<slug:slug>/members/role", member_pages.change_role, name="change_role"),
    path("<slug:slug>/members/remove", member_pages.remove, name="remove_member"),
    path("<slug:slug>/secrets", secret_pages.secrets, name="secrets"),
    path("<slug:slug>/secrets/delete", secret_pages.delete, name="delete_secret"),
    path("<slug:slug>/jobs", table_page.job_table_page, name="jobs"),
    path("<slug:slug>/jobs/stream", live.job_table_stream, name="jobs_stream"),
    path("<slug:slug>/jobs/live", table_page.live, name="jobs_live"),
    path("<slug:slug>/jobs/new", submit_page.submit, name="submit"),
    path("<slug:slug>/jobs/plan", plan_part.plan, name="plan"),
    path(_JOB, job_pages.page, name="job"),
    path(f"{_JOB}/live", job_pages.live, name="job_live"),
    path(f"{_JOB}/hosts/live", hosts_tab.live, name="job_hosts_live"),
    path(f"{_JOB}/mesh/live", mesh_tab.live, name="job_mesh_live"),
    path(f"{_JOB}/cancel", job_actions.cancel, name="cancel"),
    path(f"{_JOB}/hold", job_actions.hold, name="hold"),
    path(f"{_JOB}/release", job_actions.release, name="release"),
    path(f"{_JOB}/extend", job_actions.extend, name="extend"),
    path(f"{_JOB}/rerun", job_actions.rerun, name="rerun"),
    path(f"{_JOB}/delete", job_actions.delete, name="delete"),
    path(f"{_JOB}/<str:tab>", job_pages.page, name="job_tab"),
]
