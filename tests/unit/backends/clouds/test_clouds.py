"""Credentials of clouds: private files, merged, checked first, listed without what they are."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from jobs.backends import clouds
from jobs.backends.clouds import PrivateHome
from jobs.errors import InvalidCloudError
from tests.each_case import check_each

AWS_PAIR = {"access_key_id": "AKIA" + "A" * 16, "secret_access_key": "s/ecret+" * 5}
AWS_FILE = (
    "[default]\naws_access_key_id = AKIABBBBBBBBBBBBBBBB\naws_secret_access_key = wJalr%XX\n"
).replace("wJalr%XX", "wJalrXUtnFEMIK7MDENG")
AZURE = {
    "subscription_id": "11111111-89ab-cdef-0123-456789abcdef",
    "tenant_id": "22222222-89ab-cdef-0123-456789abcdef",
    "client_id": "33333333-89AB-CDEF-0123-456789abcdef",
    "client_secret": "abc8Q~planted-secret",
}
LAMBDA = {"api_key": "secret_team_planted.0123456789abcdef"}
ACCOUNT = {
    "type": "service_account",
    "project_id": "team-1",
    "private_key_id": "k1",
    "private_key": "-----BEGIN PRIVATE KEY-----\nplanted\n-----END PRIVATE KEY-----\n",
    "client_email": "robot@team-1.iam.gserviceaccount.com",
    "token_uri": "https://oauth2.googleapis.com/token",
}


def ssh_key(password: bytes | None = None) -> str:
    lock = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    return (
        Ed25519PrivateKey.generate()
        .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, lock)
        .decode()
    )


KEY = ssh_key()
SLURM = {"name": "main", "host": "login.example.org", "user": "alice", "port": "2222", "key": KEY}


def kubeconfig(*contexts: str, server: str = "https://k8s:6443", **user) -> str:
    user = user or {"token": "planted-token"}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kubernetes", "cluster": {"server": server}}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [
                {"name": name, "context": {"cluster": "kubernetes", "user": "admin"}}
                for name in contexts
            ],
            "current-context": contexts[0] if contexts else "",
        }
    )


@pytest.fixture
def home(tmp_path) -> PrivateHome:
    return PrivateHome(tmp_path / "skypilot" / "home")


def add(home, kind, allow_exec=False, **content):
    return clouds.add(home, kind, content, allow_exec=allow_exec)


ALL = [
    ("aws", AWS_PAIR, ["default"]),
    ("aws", {"file": AWS_FILE}, ["default"]),
    ("azure", AZURE, ["default"]),
    ("gcp", {"file": json.dumps(ACCOUNT)}, ["default"]),
    ("lambda", LAMBDA, ["default"]),
    ("kubernetes", {"file": kubeconfig("prod", "dev")}, ["prod", "dev"]),
    ("slurm", SLURM, ["main"]),
]


@pytest.mark.feature("P9.3")
@pytest.mark.parametrize(("kind", "content", "names"), ALL)
def test_what_is_added_is_its_owners_alone_and_listed_without_what_it_is(
    home, kind, content, names
):
    assert add(home, kind, **content) == names
    for path in [home.path, *home.path.rglob("*")]:
        if path.is_dir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
        elif path.name != ".clouds.lock":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    shown = repr(clouds.listed(home))
    assert [(each.kind, each.name) for each in clouds.listed(home)] == sorted(
        (kind, name) for name in names
    )
    for planted in ("planted", AWS_PAIR["secret_access_key"], "wJalr", KEY[40:80]):
        assert planted not in shown


@pytest.mark.parametrize(("kind", "content", "names"), ALL)
def test_what_is_removed_leaves_no_file_that_would_name_a_cloud(home, kind, content, names):
    add(home, kind, **content)
    for name in names:
        assert clouds.remove(home, kind, name)
        assert not clouds.remove(home, kind, name)
    assert clouds.listed(home) == []
    files = [path.name for path in home.path.rglob("*") if path.is_file()]
    assert files == [".clouds.lock"]


def test_profiles_hosts_and_contexts_live_beside_each_other(home):
    add(home, "aws", **AWS_PAIR)
    add(home, "aws", **AWS_PAIR, profile="team")
    add(home, "slurm", **SLURM)
    add(home, "slurm", **{**SLURM, "name": "other"})
    add(home, "slurm", **{**SLURM, "host": "new.example.org"})
    add(home, "kubernetes", file=kubeconfig("prod"))
    add(home, "kubernetes", file=kubeconfig("dev", server="https://other:6443"))
    assert [tuple(each) for each in clouds.listed(home)] == [
        ("aws", "default", "key AKIAAAAA..."),
        ("aws", "team", "key AKIAAAAA..."),
        ("kubernetes", "dev", "https://other:6443"),
        ("kubernetes", "prod", "https://k8s:6443"),
        ("slurm", "main", "alice@new.example.org:2222"),
        ("slurm", "other", "alice@login.example.org:2222"),
    ]
    clouds.remove(home, "slurm", "main")
    assert "Host other" in home.read(".slurm/config")
    assert KEY.strip() in home.read(".slurm/keys/other")
    assert yaml.safe_load(home.read(".kube/config"))["current-context"] == "prod"
    clouds.remove(home, "kubernetes", "prod")
    assert yaml.safe_load(home.read(".kube/config"))["current-context"] == "dev"


def test_azure_and_lambda_are_written_as_skypilot_reads_them(home):
    add(home, "azure", **AZURE)
    profile = json.loads(home.read(".azure/azureProfile.json"))
    (subscription,) = profile["subscriptions"]
    assert (subscription["id"], subscription["isDefault"]) == (AZURE["subscription_id"], True)
    assert json.loads(home.read(".azure/service_principal_entries.json")) == [
        {
            "client_id": AZURE["client_id"].lower(),
            "tenant": AZURE["tenant_id"],
            "client_secret": AZURE["client_secret"],
        }
    ]
    assert home.read(".azure/msal_token_cache.json") == "{}"
    add(home, "lambda", **LAMBDA)
    assert home.read(".lambda_cloud/lambda_keys") == f"api_key = {LAMBDA['api_key']}\n"


def test_a_slurm_host_is_written_as_skypilot_reads_it(home):
    add(home, "slurm", **SLURM, proxy_jump="bob@gate:22")
    assert home.read(".slurm/config").splitlines() == [
        "Host main",
        "  HostName login.example.org",
        "  Port 2222",
        "  User alice",
        f"  IdentityFile {home.path}/.slurm/keys/main",
        "  IdentitiesOnly yes",
        "  ProxyJump bob@gate:22",
    ]


def test_what_was_written_by_hand_stays(home):
    home.write(".slurm/config", "# by hand\nHost old\n  HostName a\n  ProxyCommand x\n")
    add(home, "slurm", **SLURM)
    text = home.read(".slurm/config")
    assert text.startswith("# by hand\n") and "ProxyCommand x" in text and "Host main" in text


EXEC = {"exec": {"command": "/bin/planted", "apiVersion": "v1"}}
BAD = [
    ("aws", {"file": "[default]\ncredential_process = /bin/planted\n"}, "run a program"),
    ("aws", {"file": AWS_FILE + "role_arn = planted\n"}, "role_arn"),
    ("aws", {"file": "planted"}, "not an AWS credentials file"),
    ("aws", {"file": ""}, "lacks"),
    ("aws", {"file": "\n"}, "no profile"),
    ("aws", {**AWS_PAIR, "profile": "a]\n[b"}, "profile"),
    ("aws", {**AWS_PAIR, "secret_access_key": "planted\nplanted" * 4}, "look like one"),
    ("aws", {"access_key_id": AWS_PAIR["access_key_id"]}, "aws_secret_access_key"),
    ("gcp", {"file": "planted"}, "no JSON"),
    ("gcp", {"file": "[]"}, "no JSON"),
    ("gcp", {"file": json.dumps({**ACCOUNT, "type": "external_account"})}, "programs"),
    ("gcp", {"file": json.dumps({**ACCOUNT, "type": "authorized_user"})}, "service_account"),
    ("gcp", {"file": json.dumps({**ACCOUNT, "private_key": "planted"})}, "private_key"),
    ("gcp", {"file": json.dumps({**ACCOUNT, "token_uri": "https://evil.example/t"})}, "Google"),
    ("gcp", {"file": json.dumps({**ACCOUNT, "token_uri": "https://evilgoogleapis.com"})}, "Google"),
    ("gcp", {"file": json.dumps({**ACCOUNT, "project_id": ""})}, "project_id"),
    ("kubernetes", {"file": kubeconfig("prod", **EXEC)}, "run a program"),
    ("kubernetes", {"file": kubeconfig("prod", **{"auth-provider": {}})}, "run a program"),
    ("kubernetes", {"file": kubeconfig("prod", tokenFile="/planted")}, "names a file"),
    ("kubernetes", {"file": kubeconfig("prod", strange="planted")}, "does not know"),
    ("kubernetes", {"file": kubeconfig("prod", server="file:///x")}, "no server"),
    ("kubernetes", {"file": kubeconfig()}, "no context"),
    ("kubernetes", {"file": kubeconfig("prod").replace("user: admin", "user: x")}, "not there"),
    ("kubernetes", {"file": "planted: ["}, "not a kubeconfig"),
    ("kubernetes", {"file": "kind: Pod"}, "not a kubeconfig"),
    ("kubernetes", {"file": "a: &a [x]\nb: [*a, *a]\n"}, "aliases"),
    ("kubernetes", {"file": "contexts: planted"}, "not a list"),
    ("kubernetes", {"file": "[" * 2000}, "not a kubeconfig"),
    ("azure", {**AZURE, "subscription_id": "planted"}, "subscription_id must be"),
    ("azure", {**AZURE, "tenant_id": ""}, "tenant_id must be"),
    ("azure", {**AZURE, "client_secret": "planted secret"}, "client_secret must be"),
    ("lambda", {"api_key": "planted"}, "api_key must be"),
    ("lambda", {"api_key": "planted\nother = 0123456789"}, "api_key must be"),
    ("lambda", {}, "api_key must be"),
    ("slurm", {**SLURM, "name": "*"}, "name must be"),
    ("slurm", {**SLURM, "name": "../x"}, "name must be"),
    ("slurm", {**SLURM, "host": "-oProxyCommand=x"}, "host must be"),
    ("slurm", {**SLURM, "host": "a\n  ProxyCommand x"}, "host must be"),
    ("slurm", {**SLURM, "user": "a b"}, "user must be"),
    ("slurm", {**SLURM, "port": "70000"}, "port must be"),
    ("slurm", {**SLURM, "proxy_jump": "a\nLocalCommand x"}, "proxy_jump must be"),
    ("slurm", {**SLURM, "key": "planted"}, "private key"),
    ("slurm", {**SLURM, "key": ""}, "needs a key"),
    ("slurm", {**SLURM, "key": ssh_key(b"pass")}, "passphrase"),
    ("slurm", {"host": "a"}, "needs name"),
]


def files_of(home: PrivateHome) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file()}


@pytest.mark.feature("P9.3")
@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in BAD}))
def test_what_is_wrong_or_would_run_a_program_changes_nothing(home, kind):
    for each, good, _ in ALL:
        add(home, each, **good)

    def check(why: str, content: dict[str, str]) -> None:
        before = files_of(home)
        with pytest.raises(InvalidCloudError) as caught:
            add(home, kind, **content)
        assert why in caught.value.message
        assert "planted" not in caught.value.message
        assert files_of(home) == before

    check_each([(why, content) for each, content, why in BAD if each == kind], check)


def test_on_the_host_itself_programs_may_be_allowed(home):
    add(home, "kubernetes", True, file=kubeconfig("prod", **EXEC))
    add(home, "aws", True, file="[default]\ncredential_process = /bin/true\n")
    assert [each.kind for each in clouds.listed(home)] == ["aws", "kubernetes"]
    assert "/bin/planted" in home.read(".kube/config")


def test_a_crash_in_the_middle_of_writing_leaves_the_old_file(home, monkeypatch):
    add(home, "gcp", file=json.dumps(ACCOUNT))
    before = home.read(".config/gcloud/application_default_credentials.json")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        add(home, "gcp", file=json.dumps({**ACCOUNT, "project_id": "team-2"}))
    assert home.read(".config/gcloud/application_default_credentials.json") == before
