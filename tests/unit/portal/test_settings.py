"""The settings as a fresh interpreter reads them: embedded, and in production."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
PRODUCTION = {
    "DATABASE_URL": "postgresql://portal:secret@db/portal",
    "REDIS_URL": "redis://:secret@cache:6379/1",
    "MPORTAL_URL": "https://portal.example.org/",
    "SECRET_KEY": "k" * 60,
}
PROGRAM = """
import json, sys
from monarch_portal import settings
print(json.dumps({name: getattr(settings, name) for name in sys.argv[1:]}, default=str))
"""


def read(environment: dict[str, str], *names: str) -> dict[str, Any]:
    """Read the named settings; on failure the error's last line is under "error"."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"error": done.stderr.splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_production_is_strict_about_https():
    found = read(
        PRODUCTION,
        "SESSION_COOKIE_SECURE",
        "CSRF_COOKIE_SECURE",
        "SECURE_SSL_REDIRECT",
        "SECURE_HSTS_SECONDS",
        "MPORTAL_URL",
        "CSRF_TRUSTED_ORIGINS",
    )
    assert found.pop("SECURE_HSTS_SECONDS") > 0
    assert found.pop("MPORTAL_URL") == "https://portal.example.org"
    assert found.pop("CSRF_TRUSTED_ORIGINS") == ["https://portal.example.org"]
    assert set(found.values()) == {True}


def test_production_runs_no_users_code_on_its_own_machine():
    assert not read(PRODUCTION, "MPORTAL_LOCAL_BACKEND")["MPORTAL_LOCAL_BACKEND"]


def test_production_answers_to_its_own_name_and_to_health_checks():
    hosts = read(PRODUCTION, "ALLOWED_HOSTS")["ALLOWED_HOSTS"]
    assert hosts == ["127.0.0.1", "localhost", "[::1]", "portal.example.org"]


def test_production_without_a_key_makes_none_up():
    found = read(PRODUCTION | {"SECRET_KEY": ""}, "SECRET_KEY")
    assert found == {"SECRET_KEY": ""}  # which Django refuses


def test_the_embedded_portal_works_over_http_on_loopback(tmp_path):
    found = read(
        {"MPORTAL_HOME": str(tmp_path)},
        "MPORTAL_EMBEDDED",
        "MPORTAL_LOCAL_BACKEND",
        "SESSION_COOKIE_SECURE",
        "SECURE_SSL_REDIRECT",
        "DEBUG",
    )
    assert found == {
        "MPORTAL_EMBEDDED": True,
        "MPORTAL_LOCAL_BACKEND": True,
        "SESSION_COOKIE_SECURE": False,
        "SECURE_SSL_REDIRECT": False,
        "DEBUG": False,
    }


def test_the_command_lines_variable_does_not_move_the_embedded_portal(tmp_path):
    environment = {"MPORTAL_HOME": str(tmp_path), "MPORTAL_URL": "https://another.example.org"}
    assert "another" not in read(environment, "MPORTAL_URL")["MPORTAL_URL"]


def test_reading_settings_writes_nothing(tmp_path):
    home = tmp_path / "home"
    read({"MPORTAL_HOME": str(home)}, "SECRET_KEY")
    assert not home.exists()


@pytest.mark.parametrize(
    ("redis_url", "broker_url"),
    [
        ("redis://:secret@cache:6379/1", "redis://:secret@cache:6379/1"),
        ("unix:///run/redis.sock?db=2", "redis+socket:///run/redis.sock?virtual_host=2"),
        ("unix://:a%2Fb@/run/r.sock", "redis+socket://:a%2Fb@/run/r.sock?virtual_host=0"),
    ],
)
def test_the_broker_is_the_redis_named(redis_url, broker_url):
    found = read(PRODUCTION | {"REDIS_URL": redis_url}, "CELERY_BROKER_URL")
    assert found["CELERY_BROKER_URL"] == broker_url


def test_celery_takes_json_only_and_acknowledges_what_is_done():
    found = read(PRODUCTION, "CELERY_ACCEPT_CONTENT", "CELERY_TASK_ACKS_LATE")
    assert found == {"CELERY_ACCEPT_CONTENT": ["json"], "CELERY_TASK_ACKS_LATE": True}


def test_no_script_of_strangers_and_no_inline_script_may_run():
    policy = read(PRODUCTION, "CONTENT_SECURITY_POLICY")["CONTENT_SECURITY_POLICY"]
    assert {"default-src 'none'", "script-src 'self'"} <= set(policy.split("; "))
