"""Guessing is slow: under one name, from one address, by links and tokens; no other user waits."""

from __future__ import annotations

import hashlib

import pytest
import redis
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client

from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.live import tries
from tests.factories import make_member, make_project, make_token, make_user
from tests.integration.web.conftest import text_of

PASSWORD = "correct horse battery"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def few(settings, redis_client) -> None:
    settings.MPORTAL_TRIES_PER_NAME = 3
    settings.MPORTAL_TRIES_PER_ADDRESS = 6


def sign_in(name: str = "ada", password: str = "wrong", address: str = "203.0.113.1"):
    form = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post("/sign-in", form)


def test_a_name_is_tried_so_often_from_wherever_and_then_not_even_its_password_is_looked_at():
    make_user("ada", password=PASSWORD)
    for count in range(3):
        assert sign_in(address=f"203.0.113.{count}").status_code == 200
    refused = sign_in(password=PASSWORD, address="203.0.113.9")
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= tries.WINDOW_S
    assert "Too many tries under this name have failed" in text_of(refused)
    assert "sessionid" not in refused.cookies and "_auth_user_id" not in refused.client.session


@pytest.mark.parametrize(
    "other",
    ["ADA", "aDa", " ada", "ada  ", "\tada", "\u3000ada", "\uff41\uff44\uff41", "\uff21da "],
)
def test_a_name_is_the_same_however_it_is_written(other):
    for _ in range(3):
        sign_in("ada")
    assert sign_in(other).status_code == 429


def test_an_address_tries_so_often_whatever_the_names():
    make_user("ada", password=PASSWORD)
    for count in range(6):
        assert sign_in(f"user{count}").status_code == 200
    refused = sign_in(password=PASSWORD)
    assert refused.status_code == 429
    assert "from your address" in text_of(refused)
    assert sign_in(password=PASSWORD, address="198.51.100.7").status_code == 302


def test_a_name_of_any_length_is_counted():
    for _ in range(3):
        assert sign_in("\ufdfa" * 100_000).status_code == 200
    assert sign_in("\ufdfa" * 100_000).status_code == 429


def test_the_addresses_that_one_network_hands_to_one_host_count_as_one():
    for count in range(6):
        assert sign_in(f"user{count}", address=f"2001:db8:1:2::{count}").status_code == 200
    assert sign_in(address="2001:db8:1:2:ffff:ffff:ffff:ffff").status_code == 429
    assert sign_in(address="2001:db8:1:3::1").status_code == 200


def test_addresses_written_in_two_ways_are_one_and_their_neighbours_others():
    for count in range(6):
        assert sign_in(f"user{count}", address="::ffff:203.0.113.1").status_code == 200
    assert sign_in(address="203.0.113.1").status_code == 429
    assert sign_in(address="::ffff:203.0.113.2").status_code == 200


def test_who_signs_in_begins_anew_and_costs_others_at_the_same_address_nothing():
    make_user("ada", password=PASSWORD)
    for _ in range(20):
        assert sign_in(password=PASSWORD).status_code == 302
    for _ in range(2):
        for _ in range(2):
            assert sign_in().status_code == 200
        assert sign_in(password=PASSWORD).status_code == 302


def test_an_unknown_name_is_refused_like_a_known_one():
    make_user("ada", password=PASSWORD)
    answers = {
        name: [sign_in(name, address=f"{name}.example") for _ in range(4)]
        for name in ("ada", "eve")
    }
    for known, unknown in zip(*answers.values(), strict=True):
        assert known.status_code == unknown.status_code
        assert text_of(known) == text_of(unknown)


def test_an_unknown_name_costs_one_hash_as_every_other(settings, monkeypatch):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 10)
    make_user("ada", password=PASSWORD)
    make_user("linked")  # has no password
    hashed: list[str] = []
    encode = PBKDF2PasswordHasher.encode

    def noted(self, password, salt, iterations=None):
        hashed.append(password)
        return encode(self, password, salt, iterations)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", noted)
    counts = {}
    for name in ("ada", "linked", "nobody"):
        hashed.clear()
        sign_in(name)
        counts[name] = len(hashed)
    assert set(counts.values()) == {1}, counts


def test_links_are_guessed_so_often_and_no_more():
    make_user("ada", password=PASSWORD)
    visitor = Client(REMOTE_ADDR="203.0.113.1")
    for count in range(6):
        assert visitor.post(f"/sign-in/once/guess{count}").status_code == 410
    refused = visitor.post("/sign-in/once/guess")
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert sign_in(password=PASSWORD).status_code == 302, "passwords are counted apart"


def test_a_good_link_works_however_many_failed_at_its_address():
    secret = create_sign_in_link(make_user("ada"))
    visitor = Client(REMOTE_ADDR="203.0.113.1")
    for count in range(7):
        sign_in(f"user{count}")
        visitor.post(f"/sign-in/once/guess{count}")
    assert visitor.post("/sign-in/once/guess").status_code == sign_in("eve").status_code == 429
    assert visitor.post(f"/sign-in/once/{secret}").status_code == 302


def test_unknown_tokens_are_throttled_and_known_ones_never_notice():
    make_user("ada", password=PASSWORD)
    _, secret = make_token(make_member(make_project("rl")))
    bad = Client(headers={"Authorization": "Bearer mpt_guess"}, REMOTE_ADDR="203.0.113.1")
    good = Client(headers={"Authorization": f"Bearer {secret}"}, REMOTE_ADDR="203.0.113.1")
    assert [bad.get("/api/v1/me").status_code for _ in range(7)] == [401] * 6 + [429]
    refused = bad.get("/api/v1/me")
    assert refused.json()["code"] == "too_many_tries"
    assert int(refused["Retry-After"]) > 0
    assert good.get("/api/v1/me").status_code == 200
    assert sign_in(password=PASSWORD).status_code == 302, "people are not locked out by programs"


def test_without_redis_no_user_is_locked_out(monkeypatch):
    make_user("ada", password=PASSWORD)

    def away():
        raise redis.ConnectionError("away")

    monkeypatch.setattr(tries, "connection", away)
    assert [sign_in().status_code for _ in range(5)] == [200] * 5
    assert sign_in(password=PASSWORD).status_code == 302


def test_zero_means_no_limit(settings):
    settings.MPORTAL_TRIES_PER_NAME = settings.MPORTAL_TRIES_PER_ADDRESS = 0
    assert {sign_in().status_code for _ in range(8)} == {200}


def test_the_window_ends_and_names_are_not_kept_as_they_were_typed(redis_client):
    sign_in("hunter2 was typed into the wrong field")
    keys = list(redis_client.scan_iter("mportal:tries:*"))
    assert len(keys) == 2
    for key in keys:
        assert 0 < redis_client.ttl(key) <= tries.WINDOW_S
        assert b"hunter2" not in key
        assert len(key.rpartition(b":")[2]) == len(hashlib.sha256().hexdigest())


def test_a_success_after_the_window_leaves_no_count_that_never_ends(redis_client):
    tries.succeeded(tries.of_name("ada"), tries.of_address("203.0.113.1"))
    assert list(redis_client.scan_iter("mportal:tries:*")) == []
