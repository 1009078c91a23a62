"""Settings out of the environment, and what a wrong value is answered with."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from monarch_portal import env


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("Yes", True), ("off", False), ("", False)]
)
def test_truth_is_spelled_in_several_ways(monkeypatch, value, expected):
    monkeypatch.setenv("SWITCH", value)
    assert env.env_bool("SWITCH") is expected


def test_a_switch_that_is_neither_true_nor_false_is_named(monkeypatch):
    monkeypatch.setenv("SWITCH", "perhaps")
    with pytest.raises(ImproperlyConfigured, match="SWITCH='perhaps'"):
        env.env_bool("SWITCH")


def test_a_number_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv("NUMBER", "many")
    with pytest.raises(ImproperlyConfigured, match="NUMBER='many'"):
        env.env_int("NUMBER", 1)


def test_an_empty_number_is_the_default(monkeypatch):
    monkeypatch.setenv("NUMBER", " ")
    assert env.env_int("NUMBER", 7) == 7


def test_a_list_is_split_at_commas(monkeypatch):
    monkeypatch.setenv("NAMES", "a, b,,c ")
    assert env.env_list("NAMES") == ["a", "b", "c"]
    assert env.env_list("OTHER_NAMES", ["x"]) == ["x"]


def test_a_secret_may_lie_in_a_file(monkeypatch, tmp_path):
    file = tmp_path / "key"
    file.write_text("from the file\n")
    monkeypatch.setenv("KEY", "from the variable")
    assert env.env_secret("KEY") == "from the variable"
    monkeypatch.setenv("KEY_FILE", str(file))
    assert env.env_secret("KEY") == "from the file"


def test_a_secrets_file_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("KEY_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(ImproperlyConfigured, match="KEY_FILE"):
        env.env_secret("KEY")


def test_a_database_url_becomes_djangos_settings():
    found = env.database_from_url("postgresql://me:p%40ss@db:5433/portal?sslmode=require")
    assert found == {
        "ENGINE": "monarch_portal.postgresql",
        "NAME": "portal",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "db",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "require"},
    }


def test_a_database_url_may_name_a_socket_directory():
    found = env.database_from_url("postgresql://me:x@/portal?host=%2Frun%2Fpg")
    assert (found["HOST"], found["OPTIONS"]) == ("/run/pg", {})


def test_another_database_is_refused():
    with pytest.raises(ImproperlyConfigured, match="postgresql://"):
        env.database_from_url("sqlite:///x.db")
