"""The least role that each page and each button takes, in the project it belongs to."""

from __future__ import annotations

ROLES = ("viewer", "member", "maintainer", "admin")
PUBLIC = "public"  # without signing in
SIGNED_IN = "signed in"  # about oneself
ADMINISTRATOR = "administrator of the installation"

# The least role for each operation.
LEAST: dict[tuple[str, str], str] = {
    ("get", "healthz"): PUBLIC,
    ("get", "readyz"): PUBLIC,
    ("get", "landing"): SIGNED_IN,
    ("get", "sign_in"): PUBLIC,
    ("post", "sign_in"): PUBLIC,
    ("get", "sign_in_once"): PUBLIC,
    ("post", "sign_in_once"): PUBLIC,
    ("post", "sign_out"): PUBLIC,
    ("get", "tokens"): SIGNED_IN,
    ("post", "tokens"): SIGNED_IN,
    ("post", "revoke"): SIGNED_IN,
    ("get", "password"): SIGNED_IN,
    ("post", "password"): SIGNED_IN,
    ("post", "theme"): PUBLIC,
    ("get", "own_settings"): SIGNED_IN,
    ("get", "palette"): SIGNED_IN,
    ("get", "palette_jobs"): SIGNED_IN,
    ("get", "notifications"): SIGNED_IN,
    ("get", "notices"): SIGNED_IN,
    ("get", "schedule_times"): "viewer",
    ("get", "help"): SIGNED_IN,
    ("get", "help_search"): SIGNED_IN,
    ("get", "whats_new"): SIGNED_IN,
    ("get", "time_settings"): SIGNED_IN,
    ("post", "time_settings"): SIGNED_IN,
    ("get", "sessions"): SIGNED_IN,
    ("post", "end_own_sessions"): SIGNED_IN,
    ("get", "users"): ADMINISTRATOR,
    ("post", "users"): ADMINISTRATOR,
    ("get", "user"): ADMINISTRATOR,
    ("post", "user"): ADMINISTRATOR,
    ("post", "change_user"): ADMINISTRATOR,
    ("post", "end_sessions"): ADMINISTRATOR,
    ("get", "clouds"): ADMINISTRATOR,
    ("post", "check_clouds"): ADMINISTRATOR,
    ("post", "remove_cloud"): ADMINISTRATOR,
    ("get", "add_cloud"): ADMINISTRATOR,
    ("post", "add_cloud"): ADMINISTRATOR,
    ("get", "admin_projects"): ADMINISTRATOR,
    ("post", "admin_projects"): ADMINISTRATOR,
    ("post", "set_weight"): ADMINISTRATOR,
    ("get", "admin_queues"): ADMINISTRATOR,
    ("post", "admin_queues"): ADMINISTRATOR,
    ("get", "admin_queue"): ADMINISTRATOR,
    ("post", "admin_queue"): ADMINISTRATOR,
    ("post", "delete_queue"): ADMINISTRATOR,
    ("get", "admin_pools"): ADMINISTRATOR,
    ("post", "admin_pools"): ADMINISTRATOR,
    ("get", "admin_pool"): ADMINISTRATOR,
    ("post", "admin_pool"): ADMINISTRATOR,
    ("post", "delete_pool"): ADMINISTRATOR,
    ("get", "admin_quotas"): ADMINISTRATOR,
    ("post", "admin_quotas"): ADMINISTRATOR,
    ("get", "admin_quota"): ADMINISTRATOR,
    ("post", "admin_quota"): ADMINISTRATOR,
    ("post", "delete_quota"): ADMINISTRATOR,
    ("get", "project"): "viewer",
    ("get", "overview_live"): "viewer",
    ("get", "overview_stream"): "viewer",
    ("get", "overview_all_live"): SIGNED_IN,
    ("get", "overview_all_stream"): SIGNED_IN,
    ("get", "all_projects"): SIGNED_IN,
    ("get", "settings"): "viewer",
    ("post", "settings"): "admin",
    ("post", "allow_laptops"): "admin",
    ("post", "archive_project"): "admin",
    ("post", "unarchive_project"): "admin",
    ("post", "delete_project"): "admin",
    ("get", "all_machines"): SIGNED_IN,
    ("get", "all_machines_live"): SIGNED_IN,
    ("get", "all_machines_stream"): SIGNED_IN,
    ("post", "any_cluster_down"): SIGNED_IN,
    ("get", "old_all_clusters"): PUBLIC,
    ("get", "old_clusters"): PUBLIC,
    ("get", "old_infra"): PUBLIC,
    ("get", "machines"): "viewer",
    ("get", "machines_live"): "viewer",
    ("get", "machines_stream"): "viewer",
    ("post", "cluster_down"): "maintainer",  # of another user's; the own: test_machines
    ("post", "cluster_extend"): "maintainer",  # as above
    ("post", "cluster_stop"): "maintainer",  # as above
    ("get", "queue"): "viewer",
    ("get", "queue_live"): "viewer",
    ("get", "queue_stream"): "viewer",
    ("get", "timeline"): "viewer",
    ("get", "timeline_live"): "viewer",
    ("post", "plan"): "member",
    ("get", "usage"): "viewer",
    ("get", "budget"): "viewer",
    ("post", "budget"): SIGNED_IN,  # and the installation's administrators alone: test_usage
    ("get", "policies"): "viewer",
    ("post", "policies"): SIGNED_IN,  # as above: test_policies
    ("get", "members"): "viewer",
    ("post", "members"): "admin",
    ("post", "change_role"): "admin",
    ("post", "remove_member"): "admin",
    ("get", "secrets"): "member",
    ("post", "secrets"): "maintainer",
    ("post", "delete_secret"): "maintainer",
    ("get", "schedules"): "viewer",
    ("get", "new_schedule"): "member",
    ("post", "new_schedule"): "member",
    ("get", "schedule"): "viewer",
    ("post", "schedule"): "maintainer",  # of another user's; the own: test_schedules
    ("post", "pause_schedule"): "maintainer",  # as above
    ("post", "resume_schedule"): "maintainer",  # as above
    ("post", "run_schedule"): "maintainer",  # as above
    ("post", "delete_schedule"): "maintainer",  # as above
    ("get", "templates"): "viewer",
    ("get", "template"): "viewer",
    ("post", "template"): "member",
    ("get", "edit_template"): "maintainer",
    ("post", "edit_template"): "maintainer",
    ("post", "check_template"): "maintainer",
    ("post", "delete_template"): "maintainer",
    ("get", "jobs"): "viewer",
    ("get", "jobs_stream"): "viewer",
    ("get", "jobs_live"): "viewer",
    ("get", "history"): "viewer",
    ("get", "history_live"): "viewer",
    ("get", "compare"): "viewer",
    ("post", "compare"): "viewer",
    ("get", "compare_live"): "viewer",
    ("get", "compare_csv"): "viewer",
    ("post", "bulk"): "member",
    ("get", "bulk_done"): "viewer",
    ("post", "save_view"): "member",
    ("post", "delete_view"): "member",  # one of the own: test_views
    ("post", "edit_spec"): "member",
    ("get", "editor_words"): "viewer",
    ("get", "submit"): "member",
    ("post", "submit"): "member",
    ("get", "job"): "viewer",
    ("get", "job_live"): "viewer",
    ("get", "job_tab"): "viewer",
    ("get", "job_charts_live"): "viewer",
    ("get", "job_log_at"): "viewer",
    ("get", "job_graph_live"): "viewer",
    ("get", "job_nodes_live"): "viewer",
    ("post", "end_session"): "maintainer",  # of another user's; the own: test_job_sessions
    ("post", "stacks"): "maintainer",  # of another user's job; the own: test_stacks
    ("post", "all_stacks"): "maintainer",  # as above
    ("get", "terminal"): "maintainer",  # of another user's job; the own: real/test_terminal
    ("post", "terminal_ticket"): "maintainer",  # as above
    ("get", "array"): "viewer",
    ("get", "array_live"): "viewer",
    ("get", "array_job"): "viewer",
    ("post", "array_cancel"): "maintainer",  # of another user's; the own: test_arrays
    ("post", "array_rerun_failed"): "member",
    ("post", "cancel"): "maintainer",  # of another user's job; the own: test_job_actions
    ("post", "hold"): "maintainer",  # as above
    ("post", "release"): "maintainer",  # as above
    ("post", "prioritize"): "maintainer",  # as above
    ("post", "extend"): "maintainer",  # as above
    ("post", "annotate"): "member",
    ("post", "rerun"): "member",
    ("post", "delete"): "maintainer",
}
