"""The portal proves to any caller that names a token that it knows it, and reveals no more."""

from __future__ import annotations

import secrets
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.attempt_tokens import attempt_token, attempt_token_digest, driver_token
from jobs.models import ApiToken
from monarch_client.runner.delivery.portal_proof import Origin, digest_of, holder_of, this_machine
from tests.factories import make_attempt, make_token, make_user
from tests.integration.api.conftest import assert_problem

pytestmark = pytest.mark.django_db


def ask(caller, token, nonce=None, **extra):
    query = {"holder": holder_of(token), "nonce": nonce or secrets.token_hex(16), **extra}
    return caller.get("/proof", query)


def token_of_a_user():
    return make_token(make_user())[1]


def token_of_a_runner():
    attempt = make_attempt(ended_at=timezone.now())
    attempt.token_digest = attempt_token_digest(attempt.job_id, attempt.number)
    attempt.save()
    return attempt_token(attempt.job_id, attempt.number)


def token_of_a_program():
    attempt = make_attempt()
    return driver_token(attempt.pk, attempt.job_id, attempt.number)


@pytest.mark.parametrize("make", [token_of_a_user, token_of_a_runner, token_of_a_program])
def test_the_owner_of_a_token_can_check_the_portal_by_it(anonymous, make):
    token, nonce = make(), secrets.token_hex(16)
    response = ask(anonymous, token, nonce)
    answer = response.json()
    mac = answer.pop("mac")
    origin = Origin(**answer)
    assert (mac, origin.machine) == (origin.mac(digest_of(token), nonce), this_machine())
    assert response["Cache-Control"] == "no-store"


def test_the_question_names_no_usable_token():
    token = ApiToken.new_secret()
    program = driver_token(7, 8, 1)
    assert holder_of(token) == digest_of(token)[:16]
    assert holder_of(program) == f"mpj_7_{digest_of(program)[:16]}"


def test_an_unknown_or_ended_token_gets_no_proof(anonymous):
    token = token_of_a_user()
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    attempt = make_attempt()
    for each in (
        token,
        "mpt_unknown",
        f"mpj_{attempt.pk}_x",
        f"mpj_{attempt.pk + 1}_x",
        "mpj__x",
        "mpj_99999999999999999999_x",
    ):
        assert_problem(ask(anonymous, each), 401, "authentication_failed")


@pytest.mark.parametrize(
    "wrong",
    [{"holder": "%"}, {"holder": ""}, {"holder": "mpj_1"}, {"holder": "mpj_ä"}, {"nonce": "short"}],
)
def test_a_question_of_another_form_gets_no_proof(anonymous, wrong):
    query = {"holder": holder_of(token_of_a_user()), "nonce": secrets.token_hex(16), **wrong}
    assert_problem(anonymous.get("/proof", query), 401, "authentication_failed")
