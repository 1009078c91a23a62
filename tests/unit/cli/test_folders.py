"""Folders and files of this machine that a specification names: where they are, what is sent."""

from __future__ import annotations

import builtins
import errno
import io
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from monarch_client.sync.archive import DEFAULT_LIMITS
from tests.unit.rest.fake_portal import MOMENT, job_json, ok

JOBS = "POST /projects/rl/jobs"
UPLOADS = "POST /projects/rl/uploads"
UPLOADED = {
    "reference": "upload:x",
    "digest": "x",
    "size_bytes": 1,
    "file_count": 1,
    "created_at": MOMENT,
}


@pytest.fixture
def spec(tmp_path):
    return tmp_path / "job.yaml"


def test_a_folder_that_is_not_there_is_named(mportal, portal, spec, tmp_path):
    spec.write_text("run: ls\nworkdir: nowhere\n")
    result = mportal("submit", "-f", str(spec))
    assert result.exit_code == 2
    assert f"{spec}: workdir: There is nothing at {tmp_path / 'nowhere'}" in result.stderr
    assert "nothing was submitted" in result.stderr
    assert portal.requests == []


def test_single_files_are_put_into_the_folders_of_their_targets(mportal, portal, spec, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "netrc").write_text("machine x\n")
    (tmp_path / "go.sh").write_text("#!/bin/sh\n")
    (tmp_path / "go.sh").chmod(0o755)
    # No rule leaves out a file that is named.
    (tmp_path / ".gitignore").write_text("netrc\n")
    mounts = "{/data: data, /data/go: go.sh, ~/.netrc: netrc, ~/bin/: go.sh, /b: 's3://b/k'}"
    spec.write_text(f"run: ls\nfile_mounts: {mounts}\n")
    portal.on(JOBS, ok(job_json(), 201))
    portal.on(UPLOADS, ok(UPLOADED, 201))
    listed = mportal("submit", "--dry-run", str(spec)).stdout
    assert "file_mounts.~/.netrc: netrc (1 file, 0 KiB)\n  netrc  0 KiB" in listed
    assert mportal("submit", "-f", str(spec)).exit_code == 0
    assert list(yaml.safe_load(portal.seen(JOBS)[0].content)["file_mounts"]) == [
        "/data",
        "/b",
        "/data/.",
        "~/.",
        "~/bin/.",
    ]
    contents = []
    for request in portal.seen(UPLOADS):
        with tarfile.open(fileobj=io.BytesIO(request.content)) as archive:
            contents += [(each.name, oct(each.mode)) for each in archive]
    assert contents == [("go", "0o755"), (".netrc", "0o644"), ("go.sh", "0o755")]


def test_a_single_file_over_the_limit_is_refused_before_it_is_copied(
    mportal, portal, spec, tmp_path, monkeypatch
):
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(DEFAULT_LIMITS.most_bytes + 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    spec.write_text("run: ls\nfile_mounts: {/data/x: huge.bin}\n")
    for options in (["--dry-run", str(spec)], ["-f", str(spec)]):
        result = mportal("submit", *options)
        assert result.exit_code != 0
        assert f"{tmp_path / 'huge.bin'}: More than 1,024 MiB" in result.stderr
    assert portal.requests == []


def test_a_single_file_that_can_not_be_read_is_named(mportal, portal, spec, tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.write_text("x")
    monkeypatch.setattr(io, "open", refusing(path, io.open))
    monkeypatch.setattr(builtins, "open", refusing(path, builtins.open))
    spec.write_text("run: ls\nfile_mounts: {/data/x: secret}\n")
    result = mportal("submit", "-f", str(spec))
    assert f"{path} cannot be read" in result.stderr
    assert portal.seen(JOBS) == []


def refusing(path: Path, opened: Any) -> Any:
    """Return an `open` that may not read this file."""

    def refuse(file: Any, *options: Any, **named: Any) -> Any:
        if str(file) == str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return opened(file, *options, **named)

    return refuse


def test_a_file_is_no_work_directory(mportal, portal, spec, tmp_path):
    (tmp_path / "one.txt").touch()
    spec.write_text("run: ls\nworkdir: one.txt\nfile_mounts: {/data/one.txt: ./none.txt}\n")
    result = mportal("submit", "-f", str(spec))
    assert result.exit_code == 2
    assert "one.txt is no folder." in result.stderr
    assert "2 errors; nothing was submitted." in result.stderr


def test_a_folder_is_looked_for_from_here_if_nothing_is_beside_the_file(
    mportal, portal, spec, tmp_path, monkeypatch
):
    here = tmp_path / "here"
    for folder in (tmp_path / "both", here / "both", here / "only"):
        folder.mkdir(parents=True)
        (folder / f"from-{folder.parent.name}").touch()
    monkeypatch.chdir(here)
    spec.write_text("run: ls\nworkdir: only\nfile_mounts: {/data: both}\n")
    listed = mportal("submit", "--dry-run", str(spec)).stdout
    assert "from-here" in listed
    assert f"from-{tmp_path.name}" in listed
    spec.write_text("run: ls\nworkdir: none\n")
    result = mportal("submit", "--dry-run", str(spec))
    assert f"There is nothing at {tmp_path / 'none'}, or at {here / 'none'}." in result.stderr
