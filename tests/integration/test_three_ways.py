"""Each change that a user can make is on a page, in REST and in the command line.

A change with fewer ways is listed with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.architecture.test_documentation import commands
from tests.integration.api.audited_operations import OPERATIONS
from tests.integration.web.least_roles import LEAST

MPORTAL = "mportal "


@dataclass(frozen=True)
class Ways:
    """The form of a page and the commands that make a change; a reason where there are none."""

    page: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    why: str = ""


def ways(page: str = "", command: str = "", why: str = "") -> Ways:
    """Return ways whose names are separated by blanks and by commas."""
    return Ways(tuple(page.split()), tuple(each for each in command.split(", ") if each), why)


UPLOADS = "a page takes the folder with the job that it is for"
OWN_CLOCK = "the command line shows times in the zone of its own machine"
IN_A_BROWSER = "a sign-in, or a choice that a browser keeps"

WAYS: dict[tuple[str, str], Ways] = {
    ("patch", "me"): ways("time_settings", "", OWN_CLOCK),
    ("post", "tokens"): ways("tokens", "token create"),
    ("delete", "token"): ways("revoke", "token revoke"),
    ("post", "users"): ways("users", "admin user invite"),
    ("patch", "user"): ways(
        "change_user", "admin user disable, admin user enable, admin user admin"
    ),
    ("post", "user_link"): ways("user", "admin user link"),
    ("delete", "user_sessions"): ways("end_sessions end_own_sessions", "admin user end-sessions"),
    ("delete", "user_session"): ways("end_sessions end_own_sessions", "admin user end-sessions"),
    ("post", "projects"): ways("admin_projects", "admin project add"),
    ("patch", "project"): ways("settings allow_laptops", "project rename, project laptops"),
    ("delete", "project"): ways("delete_project", "project delete"),
    ("post", "project_archive"): ways("archive_project", "project archive"),
    ("post", "project_unarchive"): ways("unarchive_project", "project unarchive"),
    ("put", "member"): ways("members change_role", "members set"),
    ("delete", "member"): ways("remove_member", "members remove"),
    ("post", "jobs"): ways("submit", "submit, run"),
    ("post", "batch"): ways("submit", "submit"),
    ("post", "array_cancel"): ways("array_cancel", "array cancel"),
    ("post", "array_rerun_failed"): ways("array_rerun_failed", "array rerun-failed"),
    ("delete", "job"): ways("delete", "delete"),
    ("post", "cancel"): ways("cancel", "cancel"),
    ("post", "hold"): ways("hold", "hold"),
    ("post", "release"): ways("release", "release"),
    ("post", "prioritize"): ways("prioritize", "prioritize"),
    ("post", "extend"): ways("extend", "extend"),
    ("post", "rerun"): ways("rerun", "rerun"),
    ("post", "gateway_sessions"): ways("terminal_ticket", "attach, ssh, dev"),
    ("delete", "gateway_session"): ways("end_session", "sessions"),
    ("post", "stacks"): ways("stacks", "stacks"),
    ("post", "all_stacks"): ways("all_stacks", "stacks"),
    ("post", "uploads"): ways("", "submit", UPLOADS),
    ("put", "secret"): ways("secrets", "secret set"),
    ("delete", "secret"): ways("delete_secret", "secret delete"),
    ("put", "budget"): ways("budget", "budget set"),
    ("put", "limits"): ways("policies", "admin project limits"),
    ("post", "schedules"): ways("new_schedule", "schedule add"),
    ("patch", "schedule"): ways("schedule", "schedule change"),
    ("delete", "schedule"): ways("delete_schedule", "schedule rm"),
    ("post", "schedule_pause"): ways("pause_schedule", "schedule pause"),
    ("post", "schedule_resume"): ways("resume_schedule", "schedule resume"),
    ("post", "schedule_run"): ways("run_schedule", "schedule run"),
    ("post", "cluster_down"): ways("cluster_down", "clusters down"),
    ("post", "cluster_extend"): ways("cluster_extend", "clusters extend"),
    ("post", "cluster_stop"): ways("cluster_stop", "clusters stop"),
    ("post", "any_cluster_down"): ways("any_cluster_down", "clusters down"),
    ("put", "pool"): ways("admin_pools admin_pool", "admin pool set"),
    ("delete", "pool"): ways("delete_pool", "admin pool rm"),
    ("put", "queue"): ways("admin_queues admin_queue", "admin queue set"),
    ("delete", "queue"): ways("delete_queue", "admin queue rm"),
    ("post", "quotas"): ways("admin_quotas admin_quota", "admin quota set"),
    ("delete", "quota"): ways("delete_quota", "admin quota rm"),
    ("put", "weight"): ways("set_weight", "admin project weight"),
    ("put", "cloud"): ways(
        "add_cloud",
        "admin cloud add aws, admin cloud add azure, admin cloud add gcp, "
        "admin cloud add kubernetes, admin cloud add lambda, admin cloud add slurm",
    ),
    ("delete", "cloud_entry"): ways("remove_cloud", "admin cloud remove"),
    ("patch", "job"): ways("annotate", "label, note"),
    ("put", "template"): ways("edit_template", "template save"),
    ("delete", "template"): ways("delete_template", "template rm"),
    ("post", "template_run"): ways("template", "template run"),
    ("put", "shared_template"): ways("edit_template", "template save"),
    ("delete", "shared_template"): ways("delete_template", "template rm"),
    ("post", "views"): ways("save_view", "view save"),
    ("delete", "view"): ways("delete_view", "view delete"),
    ("post", "bulk"): ways("bulk", "cancel, hold, release, prioritize, rerun, delete"),
}
# Forms without a request of REST that changes something, and the reason.
PAGES_ALONE = {
    "sign_in": IN_A_BROWSER,
    "sign_in_once": IN_A_BROWSER,
    "sign_out": IN_A_BROWSER,
    "theme": IN_A_BROWSER,
    "password": "a token must not take over the account",
    "plan": "it changes nothing",
    "compare": "it changes nothing",
    "check_template": "it changes nothing",
    "edit_spec": "it changes nothing",
    "check_clouds": "it changes nothing",
}
# Commands that change nothing of the portal.
READS = frozenset(
    {
        *("login", "whoami", "token ls", "plan", "schedule list", "schedule show", "overview"),
        *(
            "ps",
            "get",
            "why",
            "graph",
            "events",
            "logs",
            "top",
            "meshes",
            "metrics",
            "history",
            "compare",
            "wait",
            "array get",
            "sync",
        ),
        *("infra", "queue jobs", "queue list", "queue pools", "queue shares"),
        *("queue timeline", "quota list"),
        *("budget get", "usage", "project ls", "project limits", "members list", "secret list"),
        *(
            "admin cloud check",
            "admin cloud list",
            "admin user ls",
            "template list",
            "template show",
            "view list",
            "admin user sessions",
        ),
    }
)


def test_each_change_of_rest_is_on_a_page_and_in_the_command_line_or_says_why_not() -> None:
    assert set(WAYS) == set(OPERATIONS)
    silent = [
        name for name, each in WAYS.items() if not (each.page and each.command) and not each.why
    ]
    assert not silent, f"without a reason: {silent}"


def test_each_form_of_a_page_makes_a_change_that_rest_makes_as_well() -> None:
    forms = {name for method, name in LEAST if method == "post"}
    assert forms == {page for each in WAYS.values() for page in each.page} | set(PAGES_ALONE)


def test_each_command_makes_a_change_that_rest_makes_as_well_or_reads() -> None:
    names = {name.removeprefix(MPORTAL) for name, _ in commands()}
    assert names == {name for each in WAYS.values() for name in each.command} | READS
