"""The audit log: entries are never changed, and outlive what they are about."""

from __future__ import annotations

from decimal import Decimal

import httpx
import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from jobs.actions.accounts.set_password import set_password
from jobs.actions.accounts.sign_in_links import create_sign_in_link, redeem
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.actions.projects.close_projects import delete_project
from jobs.actions.projects.members import set_role
from jobs.actions.projects.secrets import reseal_secrets, set_secret
from jobs.actions.projects.set_budget import remove_budget, set_budget
from jobs.actions.schedules.run_schedule import run_due
from jobs.audit.record import COMMAND_LINE, record
from jobs.ground import clock
from jobs.models import AuditEntry, Job, JobEvent
from jobs.permissions import Actor
from jobs.statuses import OnSpent, Role
from tests.factories import (
    make_actor,
    make_attempt,
    make_job,
    make_member,
    make_project,
    make_schedule,
    make_token,
    make_user,
)
from tests.serving import serving

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


def entries() -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.order_by("pk")
    return [(row.verb, row.kind, row.name) for row in rows]


def test_the_database_refuses_to_change_or_delete_an_entry():
    record(make_actor(), "hold", make_job())
    for change in (lambda rows: rows.update(verb="x"), lambda rows: rows.delete()):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change(AuditEntry.objects.all())
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute("TRUNCATE jobs_auditentry CASCADE")
    assert AuditEntry.objects.get().verb == "hold"


def test_entries_outlive_the_job_and_the_project_that_they_are_about():
    project = make_project("rl")
    admin, job = make_actor(project, Role.ADMIN), make_job(project)
    cancel_job(admin, job)
    delete_job(admin, job)
    number = job.pk
    assert not JobEvent.objects.exists()
    delete_project(admin, project, "rl")
    rows = AuditEntry.objects.order_by("pk").values_list("verb", "kind", "object_id")
    assert list(rows) == [
        ("cancel", "job", str(number)),
        ("delete_job", "job", str(number)),
        ("delete_project", "project", str(project.pk)),
    ]
    assert set(AuditEntry.objects.values_list("project_slug", flat=True)) == {"rl"}


def test_a_change_that_is_rolled_back_leaves_no_entry():
    job = make_job()
    with pytest.raises(RuntimeError), transaction.atomic():
        cancel_job(Actor(job.submitted_by), job)
        raise RuntimeError
    assert not AuditEntry.objects.exists()


def test_setting_what_is_set_already_writes_no_entry():
    project = make_project()
    admin, member = make_actor(project, Role.ADMIN), make_member(project)
    set_role(admin, project, member.username, Role.VIEWER)
    set_role(admin, project, member.username, Role.VIEWER)
    entry = AuditEntry.objects.get()
    assert (entry.before, entry.after) == ({"role": "member"}, {"role": "viewer"})


def test_an_account_says_how_its_user_signs_in_and_keeps_no_secret(caplog):
    with caplog.at_level("INFO"):
        call_command("add_user", "ada")
        user = AuditEntry.objects.earliest("pk")
        assert (user.verb, user.name, user.source) == ("add_user", "ada", COMMAND_LINE)
        ada = make_member(make_project())
        link = create_sign_in_link(ada)
        set_password(Actor(redeem(link), source="203.0.113.7"), PASSWORD)
    assert [verb for verb, _, _ in entries()] == [
        "add_user", "create_sign_in_link", "create_sign_in_link", "use_sign_in_link",
        "set_password",
    ]  # fmt: skip
    reported = repr(list(AuditEntry.objects.values())) + caplog.text
    assert link not in reported and PASSWORD not in reported


def test_limits_set_on_the_command_line_are_recorded():
    make_project("rl")
    call_command("project_limits", "rl", "--max-idle", "30")
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.kind, entry.name) == ("set_limits", "project", "rl")
    assert (entry.before, entry.after) == (
        {"max_idle_minutes": None},
        {"max_idle_minutes": 30},
    )


def test_a_removed_budget_is_recorded_with_its_terms():
    root, project = Actor(make_user(is_superuser=True)), make_project("rl")
    for _ in range(2):
        set_budget(root, project, Decimal(100), OnSpent.WARN, [80])
    remove_budget(root, project)
    remove_budget(root, project)
    assert [verb for verb, _, _ in entries()] == ["set_budget", "remove_budget"]
    entry = AuditEntry.objects.get(verb="remove_budget")
    assert (entry.name, entry.username) == ("rl", root.user.get_username())
    assert (entry.before, entry.after) == (
        {"usd": "100.00", "on_spent": "warn", "warn_at": [80]},
        None,
    )


def test_sealing_all_secrets_anew_is_recorded_with_their_number():
    project = make_project()
    set_secret(make_actor(project, Role.ADMIN), project, "A", PASSWORD)
    reseal_secrets()
    entry = AuditEntry.objects.latest("pk")
    assert (entry.verb, entry.source, entry.after) == (
        "reseal_secrets",
        COMMAND_LINE,
        {"count": 1},
    )


def test_a_job_of_a_schedule_names_its_owner_and_the_schedule(settings, tmp_path):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path)
    due = clock.now().replace(second=0, microsecond=0)
    schedule = make_schedule(name="nightly", cron="* * * * *", next_at=due)
    run_due(schedule.pk)
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.object_id) == ("submit", str(Job.objects.get().pk))
    assert (entry.username, entry.source) == (schedule.owner.username, "schedule nightly")


def test_a_childs_entry_names_the_job_whose_program_called():
    attempt = make_attempt()
    child = make_job(attempt.job.project, parent=attempt.job, submitted_by=attempt.job.submitted_by)
    cancel_job(Actor(attempt.job.submitted_by, driver=attempt), child)
    assert AuditEntry.objects.get().caller_job_id == attempt.job_id


@pytest.mark.django_db(transaction=True)
def test_an_entry_of_the_server_names_the_address_and_the_id_of_its_request(redis_client):
    _, secret = make_token(make_user())
    headers = {"Authorization": f"Bearer {secret}", "X-Request-ID": "abc"}
    with serving() as address:
        body = {"name": "laptop"}
        answer = httpx.post(f"{address}/api/v1/tokens", json=body, headers=headers, timeout=60)
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (201, "abc")
    entry = AuditEntry.objects.get()
    assert (entry.request_id, entry.source) == ("abc", "127.0.0.1")
