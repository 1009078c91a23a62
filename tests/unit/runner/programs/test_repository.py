"""The script with which a node fetches a repository."""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from monarch_client.runner.base.certificates import mint_leaf
from monarch_client.runner.base.config import Authority, Repository
from monarch_client.runner.programs.repository import SCRIPT, repository_environment
from tests.each_case import check_each
from tests.fake_ca import make_authority

BASH = shutil.which("bash") or "bash"
TOKEN = "hush-token"


def git(folder, *arguments: str) -> str:
    settings = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *settings, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder, content: str) -> str:
    (folder / "train.py").write_text(content)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", content)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def origin(tmp_path):
    """Make a repository with three commits: tag `v1`, one without a name, branch `main`."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    git(folder, "tag", "-am", "v1", "v1")
    commit(folder, "second")
    commit(folder, "third")
    return folder


def fetch(workdir, repository: Repository, **more: str) -> subprocess.CompletedProcess[str]:
    workdir.mkdir(exist_ok=True)
    env = repository_environment(
        repository, {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, **more}
    )
    return subprocess.run(
        [BASH, "-c", SCRIPT], cwd=workdir, env=env, check=False, capture_output=True, text=True
    )


def test_a_branch_a_tag_and_a_commit_are_fetched_beside_what_lies_there(origin, tmp_path):
    second = git(origin, "rev-parse", "HEAD~1")

    def check(ref, content):
        workdir = tmp_path / f"at-{ref}"
        workdir.mkdir()
        (workdir / "data").mkdir()
        for _ in range(2):  # a runner that was killed begins again
            done = fetch(workdir, Repository(f"file://{origin}", ref))
            assert done.returncode == 0, done.stderr
            assert (workdir / "train.py").read_text() == content
        assert f"workdir: file://{origin} at {git(workdir, 'rev-parse', 'HEAD')}" in done.stdout
        assert (workdir / "data").is_dir()

    check_each(
        [("", "third"), ("main", "third"), ("v1", "first"), (second, "second"),
         (second[:8], "second")],
        check,
    )  # fmt: skip


def test_what_cannot_be_fetched_is_said_in_the_last_line(origin, tmp_path):
    done = fetch(tmp_path / "a", Repository(f"file://{origin}", "nowhere"))
    assert done.returncode
    assert done.stderr.splitlines()[-1] == "there is no branch, tag or commit nowhere"
    done = fetch(tmp_path / "b", Repository(f"file://{tmp_path}/nothing"))
    assert done.returncode
    assert "nothing" in done.stderr
    done = fetch(tmp_path / "c", Repository("https://example.org/x"), PATH="/nowhere")
    assert done.stderr.startswith("git is not installed on this node")


class Private(SimpleHTTPRequestHandler):
    """A server of files for requests with the token."""

    def do_GET(self) -> None:
        wanted = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        if self.headers.get("Authorization") == f"Basic {wanted}":
            super().do_GET()
        else:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def private_url(origin, tmp_path):
    """Serve the same repository over https to clients with a token."""
    git(tmp_path, "clone", "-q", "--bare", str(origin), "served.git")
    git(tmp_path / "served.git", "update-server-info")
    authority = make_authority()
    mint_leaf(
        Authority(authority["ca_cert"], authority["ca_key"]), ["127.0.0.1"], tmp_path, "python3"
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "leaf.crt", tmp_path / "leaf.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Private, directory=str(tmp_path)))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/served.git"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_a_token_opens_a_private_repository_and_is_left_nowhere(private_url, tmp_path):
    without = fetch(tmp_path / "a", Repository(private_url), GIT_SSL_NO_VERIFY="1")
    assert without.returncode
    # This server gives out whole repositories alone.
    for ref, content in (("v1", "first"), ("main", "third"), ("", "third")):
        workdir = tmp_path / f"b{ref}"
        given = {"GIT_SSL_NO_VERIFY": "1", "GIT_TOKEN": TOKEN}
        done = fetch(workdir, Repository(private_url, ref), **given)
        assert done.returncode == 0, done.stderr
        assert (workdir / "train.py").read_text() == content
        assert TOKEN not in done.stdout + done.stderr
        assert TOKEN not in (workdir / ".git" / "config").read_text()


def test_a_filter_that_fetches_at_checkout_has_the_token(origin, tmp_path):
    (origin / ".gitattributes").write_text("*.py filter=lfs\n")
    commit(origin, "large")
    settings, host = tmp_path / "settings", "git.example.org"
    ask = f"cat >/dev/null; printf 'protocol=https\\nhost={host}\\n\\n' | git credential fill"
    git(tmp_path, "config", "-f", str(settings), "filter.lfs.smudge", f"{ask} | grep password=")
    git(
        tmp_path,
        "config",
        "-f",
        str(settings),
        f"url.file://{origin}.insteadOf",
        f"https://{host}/x",
    )
    done = fetch(
        tmp_path / "a",
        Repository(f"https://{host}/x"),
        GIT_CONFIG_GLOBAL=str(settings),
        GIT_TOKEN=TOKEN,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a" / "train.py").read_text().strip() == f"password={TOKEN}"


def test_a_key_for_ssh_is_given_by_its_whole_path_and_removed(tmp_path):
    folder = tmp_path / "with blank"
    folder.mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        '#!/bin/sh\nfor each; do [ "$last" = -i ] && '
        f'cp "$each" {tmp_path}/seen; last=$each; done\nexit 1\n'
    )
    ssh.chmod(0o755)
    path = f"{ssh.parent}:{os.environ['PATH']}"
    repository = Repository("git@example.org:x")
    done = fetch(tmp_path / "a", repository, PATH=path, TMPDIR=str(folder), GIT_SSH_KEY="k e y")
    assert done.returncode
    assert (tmp_path / "seen").read_text() == "k e y\n"
    assert list(folder.iterdir()) == []
