"""Members of a project and their roles."""

from __future__ import annotations

import pytest

from jobs.actions.projects.members import remove_member, set_role
from jobs.errors import ConflictError, NotFoundError, PermissionDeniedError
from jobs.models import Membership
from jobs.statuses import Role
from tests.factories import make_actor, make_project, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def admin(project):
    return make_actor(project, Role.ADMIN)


def test_an_admin_adds_a_member_and_changes_their_role(project, admin):
    user = make_user("alice")
    set_role(admin, project, "alice", Role.VIEWER)
    set_role(admin, project, "alice", Role.MAINTAINER)
    assert Membership.objects.get(project=project, user=user).role == Role.MAINTAINER


@pytest.mark.parametrize("role", [Role.VIEWER, Role.MEMBER, Role.MAINTAINER])
def test_no_role_below_admin_changes_roles(project, role):
    actor = make_actor(project, role)
    with pytest.raises(PermissionDeniedError):
        set_role(actor, project, actor.user.username, Role.ADMIN)


def test_the_last_admin_can_be_neither_demoted_nor_removed(project, admin):
    name = admin.user.username
    with pytest.raises(ConflictError):
        set_role(admin, project, name, Role.MEMBER)
    with pytest.raises(ConflictError):
        remove_member(admin, project, name)


def test_an_admin_who_may_not_sign_in_does_not_count_as_one_and_can_be_removed(project, admin):
    gone = make_actor(project, Role.ADMIN)
    gone.user.is_active = False
    gone.user.save()
    with pytest.raises(ConflictError):
        remove_member(admin, project, admin.user.username)
    remove_member(admin, project, gone.user.username)


def test_removing_ends_the_membership_and_a_stranger_is_not_found(project, admin):
    other = make_actor(project, Role.MEMBER)
    remove_member(admin, project, other.user.username)
    assert not Membership.objects.filter(project=project, user=other.user).exists()
    with pytest.raises(NotFoundError):
        remove_member(admin, project, other.user.username)
