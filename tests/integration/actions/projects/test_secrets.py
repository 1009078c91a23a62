"""Secrets of a project: set, deleted, given to attempts, sealed anew; never to be read."""

from __future__ import annotations

import logging

import pytest

from jobs.actions.attempts.hand_secrets import hand_secrets
from jobs.actions.jobs.submit import submit_job
from jobs.actions.projects.secrets import (
    MOST_BYTES,
    MOST_SECRETS,
    about_secret,
    delete_secret,
    reseal_secrets,
    set_secret,
)
from jobs.errors import (
    BackendError,
    ConflictError,
    InvalidSecretError,
    InvalidSpecError,
    NotFoundError,
    PermissionDeniedError,
    SecretMissingError,
    SecretsUnavailableError,
)
from jobs.ground.seals import new_key, unsealed
from jobs.models import HandedSecrets, ProjectSecret
from jobs.readers.secret_list import secret_list
from jobs.statuses import Role
from tests.factories import make_actor, make_attempt, make_job, make_project, make_spec

pytestmark = pytest.mark.django_db
VALUE = "hunter2-hunter2"


@pytest.fixture
def project():
    return make_project("rl")


@pytest.fixture
def maintainer(project):
    return make_actor(project, Role.MAINTAINER)


def attempt_with(project, secrets):
    job = make_job(project, spec=make_spec(secrets=secrets))
    return make_attempt(job)


def test_a_secret_is_listed_with_who_set_it_and_never_with_its_value(project, maintainer, caplog):
    caplog.set_level(logging.INFO)
    other = make_actor(project, Role.ADMIN)
    set_secret(maintainer, project, "B_TOKEN", VALUE)
    set_secret(maintainer, project, "A_TOKEN", "short")
    set_secret(other, project, "B_TOKEN", VALUE + "!")
    first, second = secret_list(make_actor(project, Role.MEMBER), project)
    assert (first.name, first.is_masked, second.name, second.is_masked) == (
        "A_TOKEN",
        False,
        "B_TOKEN",
        True,
    )
    assert (second.created_by, second.updated_by) == (str(maintainer.user), str(other.user))
    assert second.updated_at > second.created_at
    assert VALUE not in repr(first) + repr(second)
    assert "B_TOKEN" in caplog.text and VALUE not in caplog.text


def test_what_is_stored_is_sealed_for_its_place(project, maintainer):
    secret = set_secret(maintainer, project, "A", VALUE)
    content = bytes(ProjectSecret.objects.get().ciphertext)
    assert VALUE.encode() not in content
    assert unsealed(content, about=about_secret(secret)) == VALUE
    theirs = make_project("other")
    moved = ProjectSecret.objects.create(project=theirs, name="A", ciphertext=content)
    attempt = attempt_with(theirs, ["A"])
    with pytest.raises(BackendError, match="No key"):
        hand_secrets(attempt.job, attempt)
    assert moved.pk


@pytest.mark.parametrize("role", [Role.VIEWER, Role.MEMBER])
def test_who_may_not_change_secrets_is_refused(project, role):
    actor = make_actor(project, role)
    with pytest.raises(PermissionDeniedError):
        set_secret(actor, project, "A", VALUE)
    with pytest.raises(PermissionDeniedError):
        delete_secret(actor, project, "A")
    if role is Role.VIEWER:
        with pytest.raises(PermissionDeniedError):
            secret_list(actor, project)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("1A", VALUE),
        ("A-B", VALUE),
        ("", VALUE),
        ("A" * 101, VALUE),
        ("MPORTAL_TOKEN", VALUE),
        ("skypilot_x", VALUE),
        ("A\0", VALUE),
        ("A", ""),
        ("A", "x\0y"),
        ("A", "\ud800"),
        ("A", "x" * (MOST_BYTES + 1)),
    ],
)
def test_what_no_variable_can_hold_is_refused_without_repeating_it(
    project, maintainer, name, value
):
    with pytest.raises(InvalidSecretError) as caught:
        set_secret(maintainer, project, name, value)
    assert not value or value not in caught.value.message
    assert not ProjectSecret.objects.exists()


@pytest.mark.parametrize("value", ["x", " ", "\n", "x" * MOST_BYTES])
def test_anything_else_is_kept_as_it_is(project, maintainer, value):
    set_secret(maintainer, project, "A", value)
    attempt = attempt_with(project, ["A"])
    assert hand_secrets(attempt.job, attempt) == {"A": value}


def test_a_project_has_so_many_at_most(project, maintainer):
    ProjectSecret.objects.bulk_create(
        ProjectSecret(project=project, name=f"N{i}", ciphertext=b"") for i in range(MOST_SECRETS)
    )
    with pytest.raises(ConflictError):
        set_secret(maintainer, project, "A", VALUE)
    set_secret(maintainer, project, "N1", VALUE)


def test_deleting_one_that_is_not_there_is_reported(project, maintainer):
    set_secret(maintainer, project, "A", VALUE)
    delete_secret(maintainer, project, "A")
    with pytest.raises(NotFoundError):
        delete_secret(maintainer, project, "A")


def test_without_a_key_nothing_is_stored(project, maintainer, settings):
    settings.MPORTAL_SECRET_KEYS = []
    with pytest.raises(SecretsUnavailableError):
        set_secret(maintainer, project, "A", VALUE)
    assert not ProjectSecret.objects.exists()


def test_a_job_that_names_an_unknown_secret_is_refused_at_its_line(project, maintainer):
    set_secret(maintainer, project, "A", VALUE)
    set_secret(make_actor(other := make_project("other"), Role.ADMIN), other, "MINE", VALUE)
    source = "run: env\nsecrets:\n  A:\n  HF_TOKEN: hf_notaname\n  MINE:\n"
    with pytest.raises(InvalidSpecError) as caught:
        submit_job(maintainer, project, source)
    errors = caught.value.data["errors"]
    assert [(e["line"], e["path"], e["code"]) for e in errors] == [
        (4, "secrets.HF_TOKEN", "unknown_secret"),
        (5, "secrets.MINE", "unknown_secret"),
    ]
    assert "hf_notaname" not in str(errors)


def test_what_an_attempt_was_given_stays_the_same_whatever_changes(project, maintainer):
    set_secret(maintainer, project, "A", VALUE)
    attempt = attempt_with(project, {"HF_TOKEN": "A"})
    assert hand_secrets(attempt.job, attempt) == {"HF_TOKEN": VALUE}
    set_secret(maintainer, project, "A", "another value")
    assert hand_secrets(attempt.job, attempt) == {"HF_TOKEN": VALUE}
    delete_secret(maintainer, project, "A")
    assert hand_secrets(attempt.job, attempt) == {"HF_TOKEN": VALUE}
    assert VALUE.encode() not in bytes(HandedSecrets.objects.get().sealed)


def test_a_secret_that_is_gone_is_named_with_what_to_do(project):
    attempt = attempt_with(project, {"HF_TOKEN": "A"})
    with pytest.raises(SecretMissingError, match="no secret A any more") as caught:
        hand_secrets(attempt.job, attempt)
    assert "mportal secret set A" in caught.value.data["hint"]
    assert not HandedSecrets.objects.exists()


def test_sealing_anew_makes_the_old_key_needless(project, maintainer, settings):
    set_secret(maintainer, project, "A", VALUE)
    attempt = attempt_with(project, ["A"])
    hand_secrets(attempt.job, attempt)
    new = new_key()
    settings.MPORTAL_SECRET_KEYS = [new, *settings.MPORTAL_SECRET_KEYS]
    assert reseal_secrets() == 2
    settings.MPORTAL_SECRET_KEYS = [new]
    assert hand_secrets(attempt.job, attempt) == {"A": VALUE}
    fresh = attempt_with(project, ["A"])
    assert hand_secrets(fresh.job, fresh) == {"A": VALUE}
