"""The location of an installation, and who may enter."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from monarch_portal.embedded.errors import EmbeddedError
from monarch_portal.embedded.home import LONGEST_SOCKET_DIRECTORY, Home


@pytest.fixture
def nowhere_named(monkeypatch, tmp_path):
    monkeypatch.delenv("MPORTAL_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def test_two_checkouts_have_two_homes(nowhere_named):
    one, other = Home.of_checkout(Path("/a/portal")), Home.of_checkout(Path("/b/portal"))
    assert one.path != other.path
    assert one == Home.of_checkout(Path("/a/portal"))


def test_a_link_to_a_checkout_has_the_checkouts_home(nowhere_named):
    checkout = nowhere_named / "portal"
    checkout.mkdir()
    link = nowhere_named / "link" / "portal"
    link.parent.mkdir()
    link.symlink_to(checkout)
    assert Home.of_checkout(link) == Home.of_checkout(checkout)


def test_the_home_named_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("MPORTAL_HOME", str(tmp_path))
    assert Home.of_checkout(Path("/a/portal")).path == tmp_path


def test_a_user_other_than_root_keeps_data_in_their_own_data_directory(monkeypatch, nowhere_named):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    home = Home.of_checkout(Path("/a/portal"))
    assert home.path.is_relative_to(nowhere_named / "data" / "mportal")


def test_making_it_closes_it_to_others(tmp_path):
    home = Home(tmp_path / "home")
    home.make()
    assert stat.S_IMODE(home.path.stat().st_mode) & 0o066 == 0
    assert stat.S_IMODE(home.logs.stat().st_mode) == 0o700
    assert len(home.secret_key) > 40
    assert len(home.sealing_keys) == 1
    assert stat.S_IMODE(home.sealing_keys_file.stat().st_mode) == 0o600


def test_making_it_again_keeps_its_secrets(tmp_path):
    home = Home(tmp_path / "home")
    home.make()
    secrets = (home.secret_key, home.postgres.password, home.sealing_keys)
    home.make()
    assert (home.secret_key, home.postgres.password, home.sealing_keys) == secrets


def test_a_deep_home_has_its_sockets_elsewhere(tmp_path):
    home = Home(tmp_path / ("deep" * 25))
    assert not home.sockets.is_relative_to(home.path)
    assert len(os.fsencode(home.sockets)) <= LONGEST_SOCKET_DIRECTORY


def test_a_socket_directory_that_someone_else_made_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = Home(tmp_path / ("deep" * 25))
    home.sockets.symlink_to(tmp_path)
    with pytest.raises(EmbeddedError, match="belongs to someone else"):
        home.make()


def test_the_address_is_remembered_and_readable_by_jobs(tmp_path):
    home = Home(tmp_path)
    assert home.url == ""
    home.write_url("http://127.0.0.1:8123")
    assert home.url == "http://127.0.0.1:8123"
    assert stat.S_IMODE(home.portal_file.stat().st_mode) == 0o644
