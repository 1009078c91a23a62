"""The front door."""

from __future__ import annotations

from jobs.models import Membership
from jobs.statuses import Role
from tests.factories import make_project


def test_it_leads_to_the_first_project_and_later_to_the_last_one_looked_at(member, project):
    Membership.objects.create(project=make_project("alpha"), user=member.user, role=Role.VIEWER)
    assert member.get("/")["Location"] == "/alpha/jobs"
    member.get("/rl/jobs")
    assert member.get("/")["Location"] == "/rl/jobs"


def test_a_project_left_in_the_meantime_is_forgotten(member, project):
    member.get("/rl/jobs")
    Membership.objects.filter(user=member.user).delete()
    assert "You are not a member of any project yet" in member.text("/")


def test_a_user_without_a_project_learns_what_to_do(loner):
    page = loner.text("/")
    assert "Ask an admin of your team's project" in page.replace("&#x27;", "'")
    assert "lou" in page


def test_a_project_alone_means_its_jobs(member):
    assert member.get("/rl")["Location"] == "/rl/jobs"


def test_the_switcher_lists_my_projects_alone(member, stranger):
    page = member.text("/rl/jobs")
    assert "rl Member" in page
    assert "other" not in page
