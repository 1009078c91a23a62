"""The module `mportal_code`, which keeps Python programs in the current generation."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from monarch_client.runner.scripts import current_code, whole_lines

SHOW = "import sys, os; from part import VALUE; print(VALUE, os.getcwd(), *sys.path, sep='\\n')"


class Node:
    """A work directory that leads to one of two generations, with and without a folder."""

    def __init__(self, folder: Path) -> None:
        self.workdir, self.generations = folder / "workdir", folder / "code" / "gen"
        self._runtime = folder / "runtime"
        self._runtime.mkdir()
        shutil.copy(str(whole_lines.__file__), self._runtime / "sitecustomize.py")
        shutil.copy(str(current_code.__file__), self._runtime / "mportal_code.py")
        for number in (1, 2):
            below = self.folder(number) / "below"
            below.mkdir(parents=True)
            (self.folder(number) / "part.py").write_text(f"VALUE = {number}")
            (below / "part.py").write_text(f"VALUE = 'below {number}'")
            (below / "main.py").write_text(SHOW)
        self.switch(1)

    def folder(self, number: int) -> Path:
        return self.generations / (str(number) * 64)

    def switch(self, number: int) -> None:
        draft = self.workdir.with_name("draft")
        draft.symlink_to(self.folder(number))
        draft.replace(self.workdir)

    def run(self, *argv: str, cwd: Path) -> list[str]:
        """Return the value that a program imported, its directory, and its path."""
        env = {
            "PYTHONPATH": str(self._runtime),
            "MPORTAL_WORKDIR": str(self.workdir),
            "MPORTAL_GENERATIONS": str(self.generations),
        }
        command = [sys.executable, "-B", *argv]
        return subprocess.check_output(command, cwd=cwd, env=env, text=True).split("\n")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_no_path_of_a_program_leads_to_one_generation(node: Node) -> None:
    for argv, value in (
        (["-c", SHOW], "1"),
        (["below/main.py"], "below 1"),
        ([str(node.folder(1) / "below" / "main.py")], "below 1"),
        (["-m", "below.main"], "1"),
    ):
        shown, directory, *path = node.run(*argv, cwd=node.workdir)
        assert (shown, directory) == (value, str(node.folder(1)))
        assert not [entry for entry in path if entry.startswith(str(node.generations))]
        assert any(entry.startswith(str(node.workdir)) for entry in path)


def test_a_process_that_starts_in_an_old_generation_enters_the_current_one(node: Node) -> None:
    node.switch(2)
    assert node.run("-c", SHOW, cwd=node.folder(1))[:2] == ["2", str(node.folder(2))]
    shown, directory, *_ = node.run("-c", SHOW, cwd=node.folder(1) / "below")
    assert (shown, directory) == ("below 2", str(node.folder(2) / "below"))


def test_a_running_program_imports_from_the_generation_that_is_current(node: Node) -> None:
    new, workdir = str(node.folder(2)), str(node.workdir)
    switch = (
        f"import os; os.symlink({new!r}, 'draft'); os.replace('draft', {workdir!r}); "
        "import below.part, part; print(part.VALUE, below.part.__file__)"
    )
    (line, _) = node.run("-c", "import below; " + switch, cwd=node.workdir)
    assert line == f"2 {node.workdir / 'below' / 'part.py'}"


def test_a_program_elsewhere_stays_there(node: Node, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "part.py").write_text("VALUE = 'other'")
    shown, directory, path, *_ = node.run("-c", SHOW, cwd=elsewhere)
    assert (shown, directory, path) == ("other", str(elsewhere), "")
