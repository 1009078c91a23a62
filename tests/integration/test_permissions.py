"""The permission matrix: each verb against each role, and the limits of tokens."""

from __future__ import annotations

import pytest

from jobs.errors import NotFoundError, PermissionDeniedError
from jobs.permissions import Actor, Verb, job_for, may, project_for, projects_of, require
from jobs.statuses import Role
from tests.each_case import check_each
from tests.factories import make_actor, make_job, make_project, make_token, make_user

pytestmark = pytest.mark.django_db

# docs/reference/permissions.md, written out once more.
ALLOWED = {
    Verb.VIEW_PROJECT: {"viewer", "member", "maintainer", "admin"},
    Verb.SUBMIT_JOB: {"member", "maintainer", "admin"},
    Verb.RERUN_JOB: {"member", "maintainer", "admin"},
    Verb.UPLOAD: {"member", "maintainer", "admin"},
    Verb.CANCEL_OWN_JOB: {"member", "maintainer", "admin"},
    Verb.CANCEL_ANY_JOB: {"maintainer", "admin"},
    Verb.HOLD_OWN_JOB: {"member", "maintainer", "admin"},
    Verb.HOLD_ANY_JOB: {"maintainer", "admin"},
    Verb.PRIORITIZE_OWN_JOB: {"member", "maintainer", "admin"},
    Verb.PRIORITIZE_ANY_JOB: {"maintainer", "admin"},
    Verb.EXTEND_OWN_JOB: {"member", "maintainer", "admin"},
    Verb.EXTEND_ANY_JOB: {"maintainer", "admin"},
    Verb.MANAGE_OWN_CLUSTERS: {"member", "maintainer", "admin"},
    Verb.ATTACH_TO_OWN_JOB: {"member", "maintainer", "admin"},
    Verb.ATTACH_TO_ANY_JOB: {"maintainer", "admin"},
    Verb.LABEL_JOB: {"member", "maintainer", "admin"},
    Verb.DUMP_OWN_STACKS: {"member", "maintainer", "admin"},
    Verb.DUMP_ANY_STACKS: {"maintainer", "admin"},
    Verb.DELETE_JOB: {"maintainer", "admin"},
    Verb.MANAGE_CLUSTERS: {"maintainer", "admin"},
    Verb.MANAGE_OWN_SCHEDULES: {"member", "maintainer", "admin"},
    Verb.MANAGE_SCHEDULES: {"maintainer", "admin"},
    Verb.MANAGE_TEMPLATES: {"maintainer", "admin"},
    Verb.LIST_SECRETS: {"member", "maintainer", "admin"},
    Verb.MANAGE_SECRETS: {"maintainer", "admin"},
    Verb.MANAGE_MEMBERS: {"admin"},
    Verb.MANAGE_PROJECT: {"admin"},
}


@pytest.mark.feature("P8.1")
@pytest.mark.parametrize("role", Role)
def test_a_role_may_do_what_the_matrix_says_and_only_in_its_own_project(role):
    project, other = make_project(), make_project()
    actor = make_actor(project, role)

    def check(verb: Verb) -> None:
        assert may(actor, verb, project) == (role.value in ALLOWED[verb])
        assert not may(actor, verb, other)

    check_each(Verb, check)


def test_a_refusal_says_which_role_would_do():
    project = make_project("rl")
    with pytest.raises(PermissionDeniedError, match="maintainer"):
        require(make_actor(project, Role.MEMBER), Verb.DELETE_JOB, project)


def test_an_installation_admin_may_do_everything_everywhere():
    actor = Actor(make_user(is_superuser=True))
    project = make_project()
    assert all(may(actor, verb, project) for verb in Verb)
    assert project in projects_of(actor)


def test_an_inactive_user_may_do_nothing():
    project = make_project()
    actor = make_actor(project, Role.ADMIN)
    actor.user.is_active = False
    assert not any(may(actor, verb, project) for verb in Verb)
    assert not projects_of(actor)


def test_a_read_only_token_only_looks():
    project = make_project()
    user = make_actor(project, Role.ADMIN).user
    token, _ = make_token(user, read_only=True)
    allowed = {verb for verb in Verb if may(Actor(user, token), verb, project)}
    assert allowed == {Verb.VIEW_PROJECT}
    with pytest.raises(PermissionDeniedError, match="this token may only read"):
        require(Actor(user, token), Verb.SUBMIT_JOB, project)


def test_a_token_of_one_project_does_not_reach_another():
    project, other = make_project(), make_project()
    user = make_user(is_superuser=True)
    token, _ = make_token(user, project=project)
    actor = Actor(user, token)
    assert list(projects_of(actor)) == [project]
    assert not may(actor, Verb.VIEW_PROJECT, other)


def test_a_project_or_job_of_others_is_not_found_rather_than_forbidden():
    job = make_job()
    stranger = make_actor(make_project())
    with pytest.raises(NotFoundError):
        project_for(stranger, job.project.slug)
    with pytest.raises(NotFoundError):
        job_for(stranger, job.project.slug, job.pk)


def test_a_job_is_reached_through_its_own_project_alone():
    mine = make_project()
    actor = make_actor(mine, Role.ADMIN)
    job = make_job()
    with pytest.raises(NotFoundError):
        job_for(actor, mine.slug, job.pk)
