"""GPUs as a stand-in for NVML reports them."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.runner.probes import nvml
from monarch_client.runner.probes.nvml import Nvml, visible
from tests import stand_in_nvml


@pytest.fixture(autouse=True)
def all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(nvml.VISIBLE_VARIABLE, raising=False)


def test_each_gpu_reports_its_use_memory_heat_and_power(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(nvml.LIBRARY_VARIABLE, str(stand_in_nvml.build(tmp_path)))
    first, second, third = Nvml().gpus()
    assert first == {
        "index": 0,
        "name": "Stand-in 0",
        "utilization": 97,
        "memory_used": 20 << 30,
        "memory_total": 80 << 30,
        "celsius": 41,
        "watts": 123.5,
    }
    assert (second["index"], second["name"], second["celsius"]) == (1, "Stand-in 1", 42)
    # A value that it does not report is None, not 0.
    assert (third["utilization"], third["memory_used"], third["watts"]) == (None, None, 123.5)


def test_only_the_gpus_that_the_job_was_given_are_reported(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(nvml.LIBRARY_VARIABLE, str(stand_in_nvml.build(tmp_path)))
    monkeypatch.setenv(nvml.VISIBLE_VARIABLE, "1")
    assert [gpu["index"] for gpu in Nvml().gpus()] == [1]


def test_a_library_that_is_broken_or_not_there_is_no_gpu_and_no_trouble(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv(nvml.LIBRARY_VARIABLE, str(tmp_path / "nothing.so"))
    assert Nvml().gpus() == []
    text = tmp_path / "text.so"
    text.write_text("not a library")
    monkeypatch.setenv(nvml.LIBRARY_VARIABLE, str(text))
    assert Nvml().gpus() == []
    monkeypatch.setenv(nvml.LIBRARY_VARIABLE, str(stand_in_nvml.build(tmp_path, init_answer=9)))
    assert Nvml().gpus() == []
    monkeypatch.setenv(nvml.LIBRARY_VARIABLE, "libc.so.6")
    assert Nvml().gpus() == []


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("2,0", [0, 2]),
        ("GPU-5f3a", [0, 1, 2, 3]),
        ("7", [0, 1, 2, 3]),
    ],
)
def test_the_choice_of_gpus_is_read_as_programs_read_it(
    chosen: str | None, seen: list[int]
) -> None:
    assert visible(range(4), chosen) == seen
