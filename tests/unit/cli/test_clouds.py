"""mportal admin cloud: credentials go out from files and prompts, and none is printed."""

from __future__ import annotations

import json

from tests.unit.rest.fake_portal import ok, page, problem

ENTRY = {"kind": "slurm", "name": "main", "about": "alice@login:22"}
STATES = [
    {"name": "Slurm", "is_enabled": True, "reason": ""},
    {"name": "AWS", "is_enabled": False, "reason": "no credentials"},
]


def sent(portal):
    return json.loads(portal.requests[-1].content)


def test_a_slurm_login_node_is_added_with_its_key(mportal, portal, tmp_path):
    (tmp_path / "key").write_text("KEY\n")
    portal.on("PUT /clouds/slurm", ok({"names": ["main"]}))
    result = mportal(
        "admin", "cloud", "add", "slurm", "main", "--host", "login", "--user", "alice",
        "--key", str(tmp_path / "key"),
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "slurm main: added\n")
    assert sent(portal) == {
        "name": "main", "host": "login", "user": "alice", "port": "22", "key": "KEY\n"
    }  # fmt: skip


def test_a_key_pairs_secret_is_requested_and_not_shown(mportal, portal):
    portal.on("PUT /clouds/aws", ok({"names": ["default"]}))
    result = mportal("admin", "cloud", "add", "aws", "--access-key-id", "AKIA", input="hidden\n")
    assert sent(portal) == {"access_key_id": "AKIA", "secret_access_key": "hidden"}
    assert "hidden" not in result.stdout + result.stderr


def test_secrets_of_azure_and_lambda_are_requested_and_not_shown(mportal, portal):
    for kind in ("azure", "lambda"):
        portal.on(f"PUT /clouds/{kind}", ok({"names": ["default"]}))
    add = ("admin", "cloud", "add")
    ids = ("--subscription-id", "s", "--tenant-id", "t", "--client-id", "c")
    results = [mportal(*add, "azure", *ids, input="hidden\n")]
    assert sent(portal) == {
        "subscription_id": "s", "tenant_id": "t", "client_id": "c", "client_secret": "hidden"
    }  # fmt: skip
    results.append(mportal(*add, "lambda", input="hidden\n"))
    assert sent(portal) == {"api_key": "hidden"}
    assert all("hidden" not in each.stdout + each.stderr for each in results)


def test_files_are_sent_as_they_are(mportal, portal, tmp_path):
    (tmp_path / "file").write_text("content")
    for kind in ("aws", "gcp", "kubernetes"):
        portal.on(f"PUT /clouds/{kind}", ok({"names": ["x"]}))
        mportal("admin", "cloud", "add", kind, "--file", str(tmp_path / "file"))
        assert sent(portal) == {"file": "content"}
    assert mportal("admin", "cloud", "add", "aws").exit_code == 2


def test_what_was_added_is_listed_and_removed(mportal, portal):
    portal.on("GET /clouds", page([ENTRY]))
    assert "alice@login:22" in mportal("admin", "cloud", "list").stdout
    portal.on("DELETE /clouds/slurm/main", ok(None, 204))
    assert mportal("admin", "cloud", "remove", "slurm", "main").stdout == "slurm main: removed\n"


def test_a_check_waits_until_skypilot_has_looked(mportal, portal, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    portal.on("POST /clouds/check", problem(503, "still_looking"), page(STATES))
    lines = mportal("admin", "cloud", "check").stdout.splitlines()
    assert lines[1].split() == ["Slurm", "yes"]
    assert lines[2].split() == ["AWS", "no", "no", "credentials"]


def test_a_check_that_is_refused_says_why(mportal, portal):
    portal.on("POST /clouds/check", problem(503, "backend_unavailable", "SkyPilot is not enabled."))
    result = mportal("admin", "cloud", "check")
    assert result.exit_code == 125
    assert "SkyPilot is not enabled." in result.stderr
