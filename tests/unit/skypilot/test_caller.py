"""Asking through a child: one call for all who ask the same; late answers can be fetched."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monarch_client.skypilot import flights
from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from tests.unit.skypilot.conftest import CallerMaker
from tests.waiting import eventually


def calls_in(diary: Path) -> int:
    return len(diary.read_text().splitlines()) if diary.exists() else 0


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    return tmp_path / "diary"


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


def test_an_answer_is_plain_data(caller: SkyCaller) -> None:
    value = {"name": "größe", "rows": [1, 2.5, None, True], "long": "x" * 300_000}
    assert caller.call("echo", {"value": value}) == value


def test_what_cannot_be_sent_is_sent_as_text(caller: SkyCaller) -> None:
    assert caller.call("unreadable") == {"handle": "handle"}


def test_a_refusal_comes_with_its_kind_and_detail(caller: SkyCaller) -> None:
    with pytest.raises(SkyPilotError, match="No") as raised:
        caller.call("refused", {"kind": "no_capacity"})
    assert raised.value.kind == "no_capacity"
    assert raised.value.detail == {"reasons": ["a", "b"]}


def test_an_unknown_error_comes_without_colors(caller: SkyCaller) -> None:
    with pytest.raises(SkyPilotError, match=r"^not today$") as raised:
        caller.call("misunderstood")
    assert raised.value.kind == "other"


@pytest.mark.parametrize(("name", "args"), [("nonsense", {}), ("echo", {"nonsense": 1})])
def test_a_call_that_does_not_exist_is_an_error_not_a_silence(
    caller: SkyCaller, name: str, args: dict[str, int]
) -> None:
    with pytest.raises(SkyPilotError):
        caller.call(name, args)


def test_what_a_call_prints_is_not_taken_for_an_answer(caller: SkyCaller) -> None:
    assert caller.call("chatty") == "right"
    log = (caller.options.home / "calls.log").read_text()
    assert "bytes to where stdout was" in log
    assert "a child of a child" in log


def test_those_who_ask_the_same_at_once_share_one_call(
    caller: SkyCaller, diary: Path, gate: Path
) -> None:
    args = {"diary": str(diary), "until": str(gate), "value": 7}
    with ThreadPoolExecutor(8) as threads:
        requested = [threads.submit(caller.call, "noted", args) for _ in range(8)]
        assert eventually(lambda: calls_in(diary))
        gate.touch()
        assert [one.result() for one in requested] == [7] * 8
    assert calls_in(diary) == 1


def test_other_arguments_are_another_call_and_wait_for_no_other(
    caller: SkyCaller, diary: Path, gate: Path
) -> None:
    with pytest.raises(StillBusyError):
        caller.call("noted", {"diary": str(diary), "until": str(gate)}, 0.0)
    assert caller.call("echo", {"value": 1}) == 1
    assert caller.call("echo", {"value": 2}) == 2


def test_an_answer_that_comes_late_is_picked_up_by_the_next_who_asks(
    caller: SkyCaller, diary: Path, gate: Path
) -> None:
    args = {"diary": str(diary), "until": str(gate), "value": "late"}
    for _ in range(2):
        with pytest.raises(StillBusyError):
            caller.call("noted", args, 0.2)
    gate.touch()
    assert eventually(lambda: caller.call("echo") is None)
    assert caller.call("noted", args) == "late"
    assert calls_in(diary) == 1


def test_an_answer_picked_up_is_not_given_again(caller: SkyCaller, diary: Path) -> None:
    args = {"diary": str(diary)}
    caller.call("noted", args)
    caller.call("noted", args)
    assert calls_in(diary) == 2


def test_a_fresh_answer_is_given_again_to_those_who_take_one(
    caller: SkyCaller, diary: Path
) -> None:
    args = {"diary": str(diary)}
    caller.call("noted", args, fresh_s=60)
    caller.call("noted", args, fresh_s=60)
    assert calls_in(diary) == 1
    caller.call("noted", args, fresh_s=0)
    assert calls_in(diary) == 2


def test_an_answer_that_is_never_fetched_is_forgotten(
    caller: SkyCaller, diary: Path, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = {"diary": str(diary), "until": str(gate)}
    with pytest.raises(StillBusyError):
        caller.call("noted", args, 0.0)
    gate.touch()
    assert eventually(lambda: calls_in(diary) == 1 and caller.call("echo") is None)
    monkeypatch.setattr(flights, "KEEP_S", 0.0)
    assert eventually(lambda: caller.call("noted", args, 5) is None and calls_in(diary) > 1)


def test_a_call_that_is_busy_elsewhere_is_still_busy_here(caller: SkyCaller) -> None:
    with pytest.raises(StillBusyError):
        caller.call("busy")


def test_the_child_sees_nothing_of_our_surroundings_but_what_it_needs(
    caller: SkyCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYPILOT_USER", "stranger")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("KUBECONFIG", "/somewhere")
    monkeypatch.setenv("https_proxy", "http://proxy:1")
    seen = caller.call("surroundings")
    environment = seen["environment"]
    assert seen["directory"] == str(caller.options.home) == environment["HOME"]
    assert {name for name in environment if name.startswith("SKYPILOT")} == {
        "SKYPILOT_API_SERVER_ENDPOINT",
        "SKYPILOT_SERVICE_ACCOUNT_TOKEN",
        "SKYPILOT_DISABLE_LOCAL_API_SERVER",
        "SKYPILOT_DISABLE_USAGE_COLLECTION",
    }
    assert not {"AWS_SECRET_ACCESS_KEY", "KUBECONFIG", "DATABASE_URL"} & set(environment)
    assert environment["https_proxy"] == "http://proxy:1"


def test_no_other_user_may_look_into_its_home(caller: SkyCaller) -> None:
    caller.call("echo")
    assert caller.options.home.stat().st_mode & 0o077 == 0
    assert (caller.options.home / "calls.log").stat().st_mode & 0o077 == 0
    assert caller.options.home.stat().st_uid == os.geteuid()


def test_a_child_that_is_warmed_up_imports_skypilot_before_the_first_call(
    make_caller: CallerMaker, options: CallerOptions
) -> None:
    options.home.mkdir()
    (options.home / "calls.py").write_text("open('imported', 'w').close()\nCALLS = {}\n")
    program = "import sys; sys.path.insert(0, '.')\n"
    program += "from monarch_client.skypilot.child import main; main('calls')"
    make_caller(child=("-c", program)).warm_up()
    assert eventually((options.home / "imported").exists)
