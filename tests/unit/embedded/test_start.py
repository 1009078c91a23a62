"""The first steps of a start: the lock, the port, the account, the size of logs."""

from __future__ import annotations

import errno
import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from monarch_client.runner.base.listening_sockets import sockets_listening_at
from monarch_portal.embedded import account, listener, log_files
from monarch_portal.embedded.errors import EmbeddedError
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.instance_lock import InstanceLock
from tests.waiting import eventually


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.delenv("MPORTAL_PORT", raising=False)
    return Home(tmp_path)


def test_one_lock_has_one_holder(tmp_path):
    first, second = InstanceLock(tmp_path / "lock"), InstanceLock(tmp_path / "lock")
    assert first.holder() is None
    assert first.acquire()
    assert not second.acquire()
    assert second.holder() == os.getpid()
    first.leave()
    assert second.wait_until_free(1)
    assert second.acquire()


def test_waiting_for_a_lock_that_stays_ends(tmp_path):
    lock = InstanceLock(tmp_path / "lock")
    lock.acquire()
    assert not lock.wait_until_free(0.1)


def test_the_port_of_last_time_is_taken_again(home):
    with listener.listen(home) as first:
        url = listener.url_of(first)
    home.write_url(url)
    with listener.listen(home) as second:
        assert listener.url_of(second) == url


def test_the_first_start_passes_over_a_port_in_use(home):
    with listener.listen(home) as first, listener.listen(home) as second:
        assert listener.url_of(first) != listener.url_of(second)
        assert second.getsockname()[0] == "127.0.0.1"


def test_the_portal_does_not_move_when_its_port_is_taken_and_names_the_holder(home):
    with listener.listen(home) as last_time:
        port = last_time.getsockname()[1]
    home.write_url(f"http://127.0.0.1:{port}")
    thief = (sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port))
    with subprocess.Popen(thief, stderr=subprocess.DEVNULL) as process:
        try:
            assert eventually(lambda: sockets_listening_at("127.0.0.1", port))
            with pytest.raises(EmbeddedError) as refusal:
                listener.listen(home)
        finally:
            process.kill()
    message = str(refusal.value)
    user = f"user {pwd.getpwuid(os.getuid()).pw_name}"
    reported = (f"Port {port}", f"process {process.pid} ", user, "-m http.server", "MPORTAL_PORT=N")
    assert [each for each in reported if each not in message] == []


def test_a_portal_moves_on_purpose_and_stays_there(home, monkeypatch):
    with listener.listen(home) as first, socket.create_server(("127.0.0.1", 0)) as free:
        home.write_url(listener.url_of(first))
        port = free.getsockname()[1]
        free.close()
        monkeypatch.setenv("MPORTAL_PORT", str(port))
        with listener.listen(home) as moved:
            home.write_url(listener.url_of(moved))
        monkeypatch.delenv("MPORTAL_PORT")
        with listener.listen(home) as again:
            assert again.getsockname()[1] == port


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_chosen_port_that_is_none_is_refused(home, monkeypatch, port):
    monkeypatch.setenv("MPORTAL_PORT", port)
    with pytest.raises(EmbeddedError, match="no port"):
        listener.listen(home)


def test_a_chosen_port_in_use_is_an_error_that_names_it(home, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("MPORTAL_PORT", str(port))
        with pytest.raises(EmbeddedError, match=f"Port {port}, .* process {os.getpid()} "):
            listener.listen(home)


def test_a_log_that_grew_too_large_keeps_one_older_part(tmp_path):
    log = tmp_path / "web.log"
    with log.open("a") as writer:
        writer.write("old\n")
        writer.flush()
        log_files.bound_logs(tmp_path, largest=3)
        writer.write("new\n")
    assert log.read_text() == "new\n"
    assert (tmp_path / "web.log.1").read_text() == "old\n"


def test_a_log_that_cannot_be_kept_on_a_full_disk_is_cut_all_the_same(tmp_path, monkeypatch):
    def full(_source: Path, target: Path) -> None:
        target.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log_files.shutil, "copy2", full)
    (tmp_path / "web.log").write_text("much\n")
    log_files.bound_logs(tmp_path, largest=3)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("web.log", "")]


def test_a_user_other_than_root_runs_servers_as_themselves(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(os, "getegid", lambda: 12345)
    found = account.server_account(tmp_path / "postgres", 7)
    assert found == account.Account(12345, 12345)
    assert not found.changes


def test_roots_servers_run_under_an_id_that_no_account_and_no_neighbour_has(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    first = account.server_account(tmp_path / "one" / "postgres", 7)
    assert first.uid == account.SERVER_IDS[7]
    if os.getuid() == 0:
        neighbour = tmp_path / "two" / "postgres"
        neighbour.mkdir(parents=True)
        os.chown(neighbour, first.uid, first.gid)
        assert account.server_account(neighbour, 3) == first
        assert account.server_account(tmp_path / "one" / "postgres", 7) != first
