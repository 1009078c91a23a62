"""/{project}/members."""

from __future__ import annotations

import pytest

from jobs.models import Membership
from jobs.statuses import Role
from tests.factories import make_user
from tests.integration.web.conftest import text_of

PATH = "/rl/members"


def role_of(name):
    membership = Membership.objects.filter(project__slug="rl", user__username=name).first()
    return membership and membership.role


def test_every_member_sees_who_is_in_the_project(viewer, admin):
    page = viewer.text(PATH)
    assert "vera" in page and "ada" in page and "Viewer" in page
    assert "Add a member" not in page
    assert "Add a member" in admin.text(PATH)


def test_an_admin_adds_changes_and_removes(admin, project):
    make_user("nora")
    assert admin.post(PATH, {"username": "nora", "role": "member"})["Location"] == PATH
    assert role_of("nora") == Role.MEMBER
    admin.post(f"{PATH}/role", {"username": "nora", "role": "maintainer"})
    assert role_of("nora") == Role.MAINTAINER
    admin.post(f"{PATH}/remove", {"username": "nora"})
    assert role_of("nora") is None


def test_an_unknown_name_is_reported_at_the_field(admin):
    page = text_of(admin.post(PATH, {"username": "stranger", "role": "member"}))
    assert "There is no active user stranger." in page


def test_the_last_admin_stays(admin):
    response = admin.post(f"{PATH}/remove", {"username": "ada"}, follow=True)
    assert "is the last admin of rl" in text_of(response)
    response = admin.post(f"{PATH}/role", {"username": "ada", "role": "viewer"}, follow=True)
    assert "is the last admin of rl" in text_of(response)
    assert role_of("ada") == Role.ADMIN


def test_an_admin_who_leaves_is_taken_to_the_front_door(admin, project):
    Membership.objects.create(project=project, user=make_user("next"), role=Role.ADMIN)
    assert admin.post(f"{PATH}/remove", {"username": "ada"})["Location"] == "/"


@pytest.mark.parametrize("path", [PATH, f"{PATH}/role", f"{PATH}/remove"])
def test_no_other_user_changes_anything(viewer, maintainer, stranger, path):
    form = {"username": "vera", "role": "admin"}
    assert viewer.post(path, form).status_code == 403
    assert maintainer.post(path, form).status_code == 403
    assert stranger.post(path, form).status_code == 404
    assert role_of("vera") == Role.VIEWER
