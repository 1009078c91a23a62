"""Several folders become one tree, as rsync would put them together."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.errors import ArchiveError
from monarch_client.runner.code.manifest import File
from monarch_client.sync.merging import FolderSet
from monarch_client.sync.scanning import BlockReader


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path in ("src/model.py", "src/deep/er.py", "conf/a.yaml"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ("src", ["deep/er.py", "model.py"]),
        (["src"], ["deep/er.py", "model.py"]),
        (["src", "conf"], ["conf/a.yaml", "src/deep/er.py", "src/model.py"]),
        (["src/", "conf"], ["conf/a.yaml", "deep/er.py", "model.py"]),
        (["src/", "conf/"], ["a.yaml", "deep/er.py", "model.py"]),
    ],
)
def test_a_folder_is_put_under_its_name_or_its_content(given, paths):
    found = FolderSet(given).scan()
    assert sorted(found.files) == paths
    reader = BlockReader(found)
    for path, file in found.files.items():
        assert isinstance(file, File)
        text = b"".join(map(reader.read, file.blocks)).decode()
        assert text.endswith(path)


def test_changed_paths_are_listed_by_folder(project):
    folders = FolderSet(["src", "conf/"])
    before = folders.scan()
    (project / "src" / "model.py").write_text("new")
    (project / "conf" / "b.yaml").write_text("new")
    changed = folders.scan().changes_since(before)
    assert changed == ["b.yaml", "src/model.py"]
    assert folders.paths_in(project / "src", changed) == ["model.py"]


def test_the_same_path_in_two_folders_is_refused_and_so_is_a_missing_folder(project):
    (project / "src" / "a.yaml").write_text("")
    with pytest.raises(ArchiveError, match=r"a\.yaml is in two of the folders"):
        FolderSet(["src/", "conf/"]).scan()
    with pytest.raises(ArchiveError, match=r"no folder at .*/nothing"):
        FolderSet(["src", "nothing"])
