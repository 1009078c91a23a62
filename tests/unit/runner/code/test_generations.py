"""Generations on one node: each is what its tree says, and the program's own files survive."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monarch_client.runner.base.config import NodeFolder
from monarch_client.runner.code import mounts
from monarch_client.runner.code.errors import BlockMissingError, CodeError, FormatError
from monarch_client.runner.code.folders import remove
from monarch_client.runner.code.generations import Generations, GivenUpError
from monarch_client.runner.code.manifest import BLOCK_BYTES, File, digest_of, encode
from monarch_client.runner.code.store import Store, stamp_of
from monarch_client.runner.node.job_code import JobCode
from monarch_client.runner.node.preparation import Preparation
from tests.code_trees import Model, Script, To, found_in, plant, write_out
from tests.unit.runner.code.models import MODELS


def generations_in(folder: Path, model: Model | None = None) -> Generations:
    """Return the generations of a node whose job started with this code."""
    workdir = folder / "workdir"
    if not workdir.exists():
        write_out(model or {}, workdir)
    generations = Generations(folder / "code", workdir)
    if generations.current is None:
        generations.adopt(generations.record())
    return generations


def sync(generations: Generations, model: Model) -> str:
    """Switch to a tree whose blocks are already here."""
    tree = plant(generations.store, model)
    generations.prepare(tree)
    generations.switch(tree)
    generations.tidy()
    return tree


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(MODELS, min_size=1, max_size=6))
def test_programs_see_each_tree_in_turn_and_keep_their_own_files(models: list[Model]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generations = generations_in(folder, models[0])
        own: Model = {}
        for number, model in enumerate(models):
            sync(generations, model)
            own[f"~own-{number}"] = {"file": b"mine"}
            write_out({"file": b"mine"}, folder / "workdir" / f"~own-{number}")
            assert found_in(folder / "workdir") == {**model, **own}
            if number == 2:
                generations = generations_in(folder)
        assert len(list((folder / "code" / "gen").iterdir())) <= 3
        assert not (folder / "code" / "left").exists()


def test_the_code_that_a_job_started_with_is_the_first_generation(tmp_path: Path) -> None:
    model: Model = {"train.py": b"x = 1", "pkg": {"run.sh": Script(b"#!"), "up": To("../train.py")}}
    workdir = tmp_path / "workdir"
    write_out(model, workdir)
    (workdir / ".git").mkdir()
    (workdir / ".git" / "HEAD").write_text("ref")
    generations = Generations(tmp_path / "code", workdir)
    tree = generations.record()
    (workdir / "built.so").write_bytes(b"made by setup")
    generations.adopt(tree)
    assert tree == generations.current == plant(Store(tmp_path / "other"), model)
    assert workdir.is_symlink()
    assert found_in(workdir) == {**model, ".git": {"HEAD": b"ref"}, "built.so": b"made by setup"}
    sync(generations, {"other.py": b""})
    kept = {".git": {"HEAD": b"ref"}, "built.so": b"made by setup"}
    assert found_in(workdir) == {"other.py": b"", **kept}


def test_a_program_that_works_in_an_old_generation_keeps_it(tmp_path: Path) -> None:
    generations = generations_in(tmp_path, {"code.py": b"first"})
    script = "print('ready', flush=True); input(); print(open('code.py').read())"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path / "workdir",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        for number in range(5):
            sync(generations, {"code.py": b"%d" % number})
        output, _ = program.communicate("\n")
    assert output == "first\n"


def test_what_a_program_writes_in_an_old_generation_is_not_lost(tmp_path: Path) -> None:
    generations = generations_in(tmp_path, {"code.py": b"first"})
    workdir, old = tmp_path / "workdir", (tmp_path / "workdir").resolve()
    (workdir / "results").mkdir()
    sync(generations, {"code.py": b"second"})
    # The folder was moved, and is still found where it was.
    (old / "results" / "one").write_bytes(b"1")
    (old / "late").write_bytes(b"2")
    (old / "taken").write_bytes(b"3")
    for number in range(3):
        sync(generations, {"code.py": b"%d" % number, "taken": b"code"})
    assert not old.exists()
    assert (workdir / "results" / "one").read_bytes() == b"1"
    assert (workdir / "late").read_bytes() == b"2"
    assert (workdir / "taken").read_bytes() == b"code"
    assert (tmp_path / "code" / "left" / "taken").read_bytes() == b"3"


def test_a_switch_back_brings_the_programs_files_back(tmp_path: Path) -> None:
    generations = generations_in(tmp_path, {"code.py": b"first"})
    first = generations.current
    (tmp_path / "workdir" / "log").write_bytes(b"1")
    sync(generations, {"code.py": b"second"})
    assert sync(generations, {"code.py": b"first"}) == first
    assert found_in(tmp_path / "workdir") == {"code.py": b"first", "log": b"1"}


def test_a_file_that_a_program_changed_is_the_codes_again(tmp_path: Path) -> None:
    model: Model = {"kept.py": b"original", "code.py": b"first", "gone.py": b"", "pkg": {"a": b""}}
    generations = generations_in(tmp_path, model)
    workdir = tmp_path / "workdir"
    (workdir / "gone.py").unlink()
    (workdir / "pkg" / "a").unlink()
    (workdir / "pkg").rmdir()
    (workdir / "pkg").write_text("in the way")
    sync(generations, model)
    assert found_in(workdir) == model
    # Through the same inode in place, as root can: its block is damaged, and must be sent again.
    path = workdir / "kept.py"
    path.chmod(0o644)
    path.write_bytes(b"tampered")
    with pytest.raises(BlockMissingError):
        sync(generations, {"kept.py": b"original", "other.py": b""})
    assert not generations.store.has(digest_of(b"original"))
    sync(generations, {"kept.py": b"original", "other.py": b""})
    assert found_in(workdir) == {"kept.py": b"original", "other.py": b""}
    assert (tmp_path / "code" / "left" / "kept.py").read_bytes() == b"tampered"


def test_what_setup_changes_is_the_code_until_a_sync_replaces_it(tmp_path: Path) -> None:
    workdir = tmp_path / "workdir"
    write_out({"config": b"1", "gone": b"", "a": {"b": b"1", "c": b""}, "d": {"e": b""}}, workdir)
    generations = Generations(tmp_path / "code", workdir)
    tree = generations.record()
    (workdir / "config").write_bytes(b"2")
    (workdir / "gone").unlink()
    (workdir / "a" / "b").write_bytes(b"2")
    (workdir / "d" / "e").unlink()
    (workdir / "d").rmdir()
    (workdir / "d").symlink_to("/mnt")
    generations.adopt(tree)
    assert found_in(workdir) == {"config": b"2", "a": {"b": b"2", "c": b""}, "d": To("/mnt")}
    sync(generations, {"config": b"1", "d": {"e": b""}})
    assert found_in(workdir) == {"config": b"1", "d": {"e": b""}}


@pytest.mark.parametrize("is_adopted", [False, True])
def test_a_file_of_the_program_that_cannot_move_keeps_all_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_adopted: bool
) -> None:
    folder = NodeFolder(tmp_path)
    write_out({"a.py": b"1"}, folder.workdir)
    code = JobCode(folder)
    code.record()
    if is_adopted:
        code.adopt()
    own: Model = {"a.py": b"1", "data": {"precious": b"x"}, "also": b"y", "more": {"z": b""}}
    for name in ("data", "more"):
        write_out(own[name], folder.workdir / name)
    (folder.workdir / "also").write_bytes(b"y")
    rename = Path.rename

    def busy(path: Path, target: Path) -> Path:
        if path.name == "data":
            raise OSError(errno.EBUSY, "Device or resource busy")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", busy)
    if is_adopted:
        generations = Generations(folder.code, folder.workdir)
        with pytest.raises(OSError, match="busy"):
            sync(generations, {"a.py": b"2"})
    else:
        code.adopt()
        assert "busy" in code.problem
        assert not folder.workdir.is_symlink()
        assert not folder.code.exists()
    assert found_in(folder.workdir) == own


def test_a_mount_in_the_work_directory_is_refused_and_never_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = NodeFolder(tmp_path)
    write_out({"a.py": b"1"}, folder.workdir)
    code = JobCode(folder)
    code.record()
    write_out({"precious": b"x"}, folder.workdir / "my data")
    listing = tmp_path / "mountinfo"
    point = str(folder.workdir / "my data").replace(" ", "\\040")
    listing.write_text(f"22 1 0:5 / / rw - ext4 a rw\n23 22 0:5 /x {point} rw - ext4 a rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", listing)
    code.adopt()
    assert "a file system is mounted at my data" in code.problem
    with pytest.raises(OSError, match="mounted"):
        remove(folder.workdir)
    assert found_in(folder.workdir) == {"a.py": b"1", "my data": {"precious": b"x"}}
    assert not folder.workdir.is_symlink()


def test_a_name_that_is_not_utf_8_is_a_problem_and_no_error(tmp_path: Path) -> None:
    for number, plant_name in enumerate((_bad_file, _bad_link)):
        folder = NodeFolder(tmp_path / str(number))
        folder.workdir.mkdir(parents=True)
        plant_name(os.fsencode(folder.workdir))
        posted: list[Any] = []
        loop = SimpleNamespace(post=posted.append)
        place = SimpleNamespace(folder=folder, config=SimpleNamespace(gateway=True), loop=loop)
        preparation = Preparation(place, lambda _found: None)
        preparation._record_code()
        for thread in threading.enumerate():
            if thread.name == "code":
                thread.join()
        assert posted == [preparation._set_up]
        assert ("caf", "link")[number] in preparation._code.problem


def _bad_file(folder: bytes) -> None:
    Path(os.fsdecode(folder + b"/caf\xe9.txt")).touch()


def _bad_link(folder: bytes) -> None:
    Path(os.fsdecode(folder), "link").symlink_to(os.fsdecode(b"caf\xe9"))


def test_nothing_is_tidied_away_between_the_preparation_and_the_switch(tmp_path: Path) -> None:
    generations = generations_in(tmp_path, {"code.py": b"first"})
    first, second = (plant(generations.store, {"code.py": each}) for each in (b"2", b"3"))
    generations.prepare(first)
    generations.prepare(second)
    generations.tidy()
    generations.switch(second)
    assert found_in(tmp_path / "workdir") == {"code.py": b"3"}
    with pytest.raises(CodeError, match="not prepared"):
        generations.switch(first)
    assert found_in(tmp_path / "workdir") == {"code.py": b"3"}


def test_a_preparation_that_is_given_up_leaves_what_it_made_to_the_next_one(
    tmp_path: Path,
) -> None:
    generations = generations_in(tmp_path, {"code.py": b"first"})
    tree = plant(generations.store, {"code.py": b"2", "pkg": {"more.py": b"3"}})
    given_up = threading.Event()
    place = generations._contents.place

    def give_up(*arguments: Any) -> None:
        place(*arguments)
        given_up.set()

    generations._contents.place = give_up
    with pytest.raises(GivenUpError):
        generations.prepare(tree, given_up)
    assert found_in(tmp_path / "workdir") == {"code.py": b"first"}
    assert found_in(tmp_path / "code" / "spare") == {"code.py": b"2", "pkg": {}}
    generations.prepare(tree)
    generations.switch(tree)
    assert found_in(tmp_path / "workdir") == {"code.py": b"2", "pkg": {"more.py": b"3"}}


def test_files_of_several_blocks_are_put_together(tmp_path: Path) -> None:
    generations = generations_in(tmp_path)
    content = os.urandom(16) * (2 * BLOCK_BYTES // 16) + b"end"
    sync(generations, {"data": content, "run": Script(content), "empty": b"", "e": Script(b"")})
    expected = {"data": content, "run": Script(content), "empty": b"", "e": Script(b"")}
    assert found_in(tmp_path / "workdir") == expected


def test_a_block_that_is_not_as_long_as_promised_is_refused(tmp_path: Path) -> None:
    generations = generations_in(tmp_path, {"code.py": b"first"})
    block = generations.store.add(b"content")
    for file in (File(3, (block,)), File(BLOCK_BYTES + 1, (block, block))):
        tree = generations.store.add(encode({"file": file}))
        with pytest.raises(FormatError, match="size of its blocks"):
            generations.prepare(tree)
    assert found_in(tmp_path / "workdir") == {"code.py": b"first"}


def test_python_never_runs_a_file_compiled_from_other_code(tmp_path: Path) -> None:
    generations = generations_in(tmp_path)
    command = [sys.executable, "-c", "import code_to_sync as c; print(c.VALUE)"]
    for value in (b"1", b"2"):
        sync(generations, {"code_to_sync.py": b"VALUE = " + value})
        output = subprocess.check_output(command, cwd=tmp_path / "workdir", env={})
        assert output.strip() == value
    assert list((tmp_path / "workdir" / "__pycache__").glob("*.pyc"))
    contents = [b"%d" % number for number in range(1000)]
    assert len({stamp_of(digest_of(each)) for each in contents}) > 990


@pytest.mark.slow
def test_imports_during_switches_find_one_generation_or_the_other(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(20)]

    def code(value: int) -> Model:
        modules: Model = {f"{name}.py": b"V = %d" % value for name in names}
        return {"pkg": {"__init__.py": b"", **modules}}

    generations = generations_in(tmp_path, code(0))
    program = dedent(
        f"""
        import importlib, sys
        sys.path.insert(0, {str(tmp_path / "workdir")!r})
        count = 0
        print("ready", flush=True)
        import os, select
        while not select.select([0], [], [], 0)[0]:
            importlib.invalidate_caches()
            for name in [name for name in sys.modules if name.startswith("pkg")]:
                del sys.modules[name]
            for name in {names!r}:
                assert importlib.import_module("pkg." + name).V in range(60)
                count += 1
        print(count)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-B", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for value in range(1, 60):
            sync(generations, code(value))
        output, _ = process.communicate("\n")
    assert process.returncode == 0
    assert int(output) > len(names)


def test_a_full_disk_leaves_the_current_generation_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Model = {"a.py": b"first", "b.py": b"first too"}
    generations = generations_in(tmp_path, model)
    tree = plant(generations.store, {"a.py": b"second", "b.py": b"third", "c": Script(b"4")})
    monkeypatch.setattr(os, "link", _full_disk)
    with pytest.raises(OSError, match="No space left"):
        generations.prepare(tree)
    monkeypatch.undo()
    assert found_in(tmp_path / "workdir") == model
    generations.prepare(tree)
    generations.switch(tree)
    assert (tmp_path / "workdir" / "a.py").read_bytes() == b"second"


def _full_disk(*_arguments: object) -> None:
    raise OSError(28, "No space left on device")
