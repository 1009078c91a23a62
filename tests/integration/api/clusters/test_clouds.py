"""/clouds: for administrators of the installation; credentials are never returned."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from tests.factories import make_user
from tests.integration.api.conftest import assert_problem, caller_for
from tests.unit.backends.clouds.test_clouds import AWS_PAIR, EXEC, kubeconfig

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def skypilot_home(settings, mportal_home):
    settings.MPORTAL_SKYPILOT_ENDPOINT = ""
    return mportal_home / "skypilot" / "home"


def put(caller, kind="aws", **content):
    return caller.send("PUT", f"/clouds/{kind}", content or AWS_PAIR)


def test_an_administrator_adds_lists_and_removes(root, skypilot_home):
    assert put(root).json() == {"names": ["default"]}
    listed = root.get("/clouds")
    assert listed.json()["results"] == [
        {"kind": "aws", "name": "default", "about": "key AKIAAAAA..."}
    ]
    assert AWS_PAIR["secret_access_key"] not in listed.content.decode()
    assert (skypilot_home / ".aws" / "credentials").stat().st_mode & 0o777 == 0o600
    assert root.delete("/clouds/aws/default").status_code == 204
    assert_problem(root.delete("/clouds/aws/default"), 404, "not_found")


def test_a_context_may_have_slashes_in_its_name(root):
    name = "arn:aws:eks:us-east-1:1:cluster/prod"
    assert put(root, "kubernetes", file=kubeconfig(name)).json() == {"names": [name]}
    assert root.delete(f"/clouds/kubernetes/{name}").status_code == 204


@pytest.mark.parametrize("who", ["admin", "member", "read_only", "bound"])
def test_no_other_user_changes_or_sees_anything(who, project, request, root):
    made = {"read_only": {"read_only": True}, "bound": {"project": project}}
    if who in made:
        caller = caller_for(make_user(is_superuser=True), **made[who])
    else:
        caller = request.getfixturevalue(who)
    assert_problem(put(caller), 403, "permission_denied")
    assert_problem(caller.delete("/clouds/aws/default"), 403, "permission_denied")
    if who != "read_only":
        assert_problem(caller.get("/clouds"), 403, "permission_denied")
        assert_problem(caller.post("/clouds/check"), 403, "permission_denied")
    assert root.get("/clouds").json()["results"] == []


def test_what_would_run_a_program_is_refused_with_a_reason(root):
    answer = put(root, "kubernetes", file=kubeconfig("prod", **EXEC))
    body = assert_problem(answer, 422, "invalid_cloud")
    assert "would run a program on the portal's host" in body["detail"]
    assert_problem(put(root, "kubernetes", file="x", allow_exec="1"), 422, "invalid_cloud")


def test_odd_requests_are_refused_in_words(root):
    assert_problem(put(root, "mars", file="x"), 404, "not_found")
    assert_problem(put(root, "aws", file="x\0"), 400, "invalid_request")
    assert_problem(root.send("PUT", "/clouds/aws", ["x"]), 400, "invalid_request")
    assert_problem(root.send("PUT", "/clouds/aws", {"file": {"a": 1}}), 400, "invalid_request")


def test_where_another_server_is_used_clouds_are_added_there(root, settings):
    settings.MPORTAL_SKYPILOT_ENDPOINT = "https://sky.example.org"
    body = assert_problem(put(root), 409, "conflict")
    assert "MPORTAL_SKYPILOT_ENDPOINT" in body["detail"]


def test_on_the_host_the_same_without_signing_in(tmp_path, capsys, root):
    (tmp_path / "kubeconfig").write_text(kubeconfig("prod", **EXEC))
    arguments = ["cloud", "add", "kubernetes", "--file", str(tmp_path / "kubeconfig")]
    with pytest.raises(CommandError, match="would run a program"):
        call_command(*arguments)
    call_command(*arguments, "--allow-exec")
    call_command("cloud", "list")
    assert "kubernetes  prod  https://k8s:6443" in capsys.readouterr().out
    call_command("cloud", "remove", "kubernetes", "prod")
    assert root.get("/clouds").json()["results"] == []
    with pytest.raises(CommandError, match="no credentials"):
        call_command("cloud", "remove", "kubernetes", "prod")
