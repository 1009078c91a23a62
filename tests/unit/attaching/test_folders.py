"""The folders of programs that were killed are removed, and those of others stay."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from monarch_client.attaching.folders import PrivateFolder, sweep, sweep_notes
from monarch_client.attaching.unix_sockets import listen_in


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a folder of the test's own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def killed_program(note: dict[str, int]) -> Path:
    """Return the folder of a process that made it and was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        made = PrivateFolder(note)
        (made.path / "leaf.key").write_text("secret")
        os.write(writing, str(made.path).encode())
        signal.pause()
    folder = Path(os.read(reading, 4096).decode())
    for end in (reading, writing):
        os.close(end)
    assert sweep_notes() == []
    assert folder.exists()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return folder


def test_the_folder_of_a_killed_program_is_removed_and_its_note_returned(runtime: Path) -> None:
    folder = killed_program({"session": 7})
    assert folder.parent == runtime
    own = PrivateFolder({"session": 8})
    sweep()  # of another kind of program, which does not know what to do with the note
    assert folder.exists()
    assert sweep_notes() == [{"session": 7}]
    assert not folder.exists()
    assert own.path.stat().st_mode & 0o777 == 0o700
    own.remove()
    own.remove()
    assert list(runtime.iterdir()) == []


def test_a_folder_that_outlives_the_login_is_not_where_logging_out_removes_it(
    runtime: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    made = PrivateFolder(outlives_login=True)
    assert made.path.parent == temporary
    made._lock.close()  # as its program ends
    sweep()
    assert list(temporary.iterdir()) == []


def test_folders_that_are_no_programs_stay(runtime: Path) -> None:
    elsewhere = PrivateFolder()
    (runtime / "mportal-unknown").mkdir()
    (runtime / "mportal-file").write_text("")
    (runtime / "mportal-link").symlink_to(runtime / "mportal-target")
    target = runtime / "mportal-target"
    target.mkdir()
    (target / "lock").write_text("[1]")
    assert sweep_notes() == []
    sweep()
    assert len(list(runtime.iterdir())) == 5
    elsewhere.remove()


def test_a_socket_fits_into_the_folder_whatever_the_temporary_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    made = PrivateFolder()
    listen_in(made.path, "objects", 1).close()
    made.remove()


def test_a_folder_in_which_others_can_replace_files_is_not_used(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave a runtime folder of another user, such as after `sudo`, or one that all write to."""
    runtime.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(runtime))
    made = PrivateFolder()
    assert made.path.parent == Path("/tmp")
    made.remove()
    runtime.chmod(0o1777)
    made = PrivateFolder()
    assert made.path.parent == runtime
    made.remove()
