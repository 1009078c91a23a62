"""The file by which a driver requests the watch over its meshes, and its switch."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.runner.scripts.mportal_runtime.admin import (
    FILE_VARIABLE,
    SWITCH_VARIABLE,
    Admin,
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "watch"))
    monkeypatch.delenv(SWITCH_VARIABLE, raising=False)
    return tmp_path / "watch"


def test_it_is_there_from_the_first_mesh_to_the_end_of_them_and_not_again(file: Path) -> None:
    admin = Admin()
    admin.start()
    admin.start()
    assert file.exists()
    admin.end()
    assert not file.exists()
    admin.start()
    assert not file.exists()


@pytest.mark.parametrize(
    ("value", "is_watched"),
    [("0", False), ("false", False), (" No ", False), ("OFF", False), ("1", True), ("", True)],
)
def test_a_user_declines_with_the_words_that_one_tries(
    file: Path, monkeypatch: pytest.MonkeyPatch, value: str, is_watched: bool
) -> None:
    monkeypatch.setenv(SWITCH_VARIABLE, value)
    Admin().start()
    assert file.exists() is is_watched


def test_where_no_file_can_be_made_the_driver_goes_on(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(file / "no" / "folder"))
    admin = Admin()
    admin.start()
    admin.end()
