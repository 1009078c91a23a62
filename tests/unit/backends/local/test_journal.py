"""The journals of runners that started with an earlier release of the portal."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.backends.local.journal import unacknowledged_frames


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("last_words.py", "def read_last_words(root):\n    yield b'left\\n'\n"),
        ("journal.py", "def read_leftovers(folder):\n    yield b'left\\n'\n"),
    ],
    ids=["last_words", "leftovers"],
)
def test_the_journal_of_an_earlier_runner_is_read_with_its_own_code(
    tmp_path: Path, module: str, source: str
) -> None:
    package = tmp_path / "program" / "monarch_client" / "runner"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / module).write_text(source)
    state = tmp_path / "node" / "state"
    (state / "journal").mkdir(parents=True)
    assert list(unacknowledged_frames(tmp_path / "program", state, None)) == [b"left\n"]
