"""mportal secret: values come from a prompt, a pipe or a file, and are never printed."""

from __future__ import annotations

import json

import pytest

from tests.unit.rest.fake_portal import MOMENT, ok, page

SECRET = {
    "name": "HF_TOKEN",
    "created_at": MOMENT,
    "created_by": "ada",
    "updated_at": MOMENT,
    "updated_by": "max",
    "is_masked": True,
}
SHORT = {**SECRET, "name": "PIN", "is_masked": False}
PUT = "PUT /projects/rl/secrets/HF_TOKEN"


def sent(portal) -> str:
    return json.loads(portal.requests[-1].content)["value"]


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("hunter2\n", "hunter2"),
        ("hunter2\r\n", "hunter2"),
        ("hunter2", "hunter2"),
        (" padded \n", " padded "),
        ("two\nlines\n", "two\nlines\n"),
        ("\n", "\n"),
        ("", ""),
    ],
)
def test_a_value_comes_from_a_pipe(mportal, portal, given, value):
    portal.on(PUT, ok(SECRET))
    result = mportal("secret", "set", "HF_TOKEN", input=given)
    assert (result.exit_code, result.stdout) == (0, "HF_TOKEN: set\n")
    assert sent(portal) == value


def test_a_value_comes_from_a_file(mportal, portal, tmp_path):
    portal.on(PUT, ok(SECRET))
    (tmp_path / "key").write_text("a\nb\n")
    mportal("secret", "set", "HF_TOKEN", "--from-file", str(tmp_path / "key"))
    assert sent(portal) == "a\nb\n"
    result = mportal("secret", "set", "HF_TOKEN", "--from-file", "-", input="x\n")
    assert (result.exit_code, sent(portal)) == (0, "x")


def test_at_a_terminal_it_is_requested_twice_and_not_shown(mportal, portal, monkeypatch):
    monkeypatch.setattr("monarch_client.cli.secrets._is_terminal", lambda: True)
    portal.on(PUT, ok(SECRET))
    result = mportal("secret", "set", "HF_TOKEN", input="hunter2\nhunter2\n")
    assert sent(portal) == "hunter2"
    assert "hunter2" not in result.stdout + result.stderr


def test_a_value_is_no_argument(mportal, portal):
    result = mportal("secret", "set", "HF_TOKEN", "hunter2")
    assert result.exit_code == 2
    assert portal.requests == []


def test_what_is_not_text_is_refused(mportal, portal, tmp_path):
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    result = mportal("secret", "set", "HF_TOKEN", "--from-file", str(tmp_path / "key"))
    assert result.exit_code == 2
    assert "base64" in result.stderr


def test_a_short_value_is_remarked_upon(mportal, portal):
    portal.on("PUT /projects/rl/secrets/PIN", ok(SHORT))
    assert "too short to be masked" in mportal("secret", "set", "PIN", input="1234").stderr


def test_names_are_listed(mportal, portal):
    portal.on("GET /projects/rl/secrets", page([SECRET, SHORT]))
    result = mportal("secret", "list")
    assert "HF_TOKEN" in result.stdout and "max" in result.stdout
    assert "too short to be masked" in result.stdout
    portal.on("GET /projects/rl/secrets", page([SECRET, SHORT]))
    assert mportal("secret", "list", "-q").stdout == "HF_TOKEN\nPIN\n"


def test_several_are_deleted(mportal, portal):
    for name in ("A", "B"):
        portal.on(f"DELETE /projects/rl/secrets/{name}", ok(None, 204))
    result = mportal("secret", "delete", "A", "B")
    assert result.stdout == "A: deleted\nB: deleted\n"
