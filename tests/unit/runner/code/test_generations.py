"""Generations on one node: each is what its tree says, and the program's own files survive."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monarch_client.runner.code.errors import CodeError, FormatError
from monarch_client.runner.code.generations import Generations
from monarch_client.runner.code.manifest import BLOCK_BYTES, File, digest_of, encode
from monarch_client.runner.code.store import Store, stamp_of
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
    sync(generations, {"kept.py": b"original", "other.py": b""})
    assert not generations.store.has(digest_of(b"original"))
    sync(generations, {"kept.py": b"original"})
    assert found_in(workdir) == {"kept.py": b"original"}


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
