from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.base.config import NodeFolder, _parse
from monarch_client.runner.journal.samples import Samples
from monarch_client.runner.place import Place
from monarch_client.runner.programs import environment
from monarch_client.runner.programs.hidden_values import hidden, revealed
from tests.unit.runner.base.test_config import MINIMAL


def place(folder: Path, rank: int = 1, **config: Any) -> Place:
    unused: Any = None
    return Place(
        _parse({**MINIMAL, **config}), rank, NodeFolder(folder), unused, unused, unused, Samples()
    )


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SKYPILOT_NUM_GPUS_PER_NODE", "SKYPILOT_TASK_ID", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.feature("S3.1")
def test_run_and_setup_find_skypilots_variables(tmp_path: Path) -> None:
    run = environment.run_environment(place(tmp_path))
    assert run["SKYPILOT_NODE_RANK"] == "1"
    assert run["SKYPILOT_NODE_IPS"] == "10.0.0.1\n10.0.0.2\n10.0.0.3"
    assert run["SKYPILOT_NUM_NODES"] == "3"
    assert run["SKYPILOT_NUM_GPUS_PER_NODE"] == "0"
    assert run["SKYPILOT_TASK_ID"] == "mportal-rl-42-2"
    setup = environment.setup_environment(place(tmp_path))
    assert setup["SKYPILOT_SETUP_NODE_RANK"] == "1"
    assert setup["SKYPILOT_SETUP_NODE_IPS"] == run["SKYPILOT_NODE_IPS"]


def test_what_the_cluster_says_of_its_nodes_stays_but_ranks_are_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYPILOT_NUM_GPUS_PER_NODE", "8")
    monkeypatch.setenv("SKYPILOT_TASK_ID", "sky-2026")
    monkeypatch.setenv("SKYPILOT_NODE_RANK", "9")
    run = environment.run_environment(place(tmp_path))
    assert (run["SKYPILOT_NUM_GPUS_PER_NODE"], run["SKYPILOT_TASK_ID"]) == ("8", "sky-2026")
    assert run["SKYPILOT_NODE_RANK"] == "1"


def test_a_program_finds_secrets_that_were_hidden_on_their_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"KEY": "hush caf\u00e9\n", "SKYPILOT_DOCKER_PASSWORD": "its password", "NONE": ""}
    for name, value in hidden(secrets, MINIMAL["token"]).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PLAIN", "as it is")
    run = environment.run_environment(place(tmp_path, secrets=[*secrets, "PLAIN", "GONE"]))
    assert {name: run[name] for name in secrets} == secrets
    assert (run["PLAIN"], "GONE" in run) == ("as it is", False)


def test_a_hidden_secret_opens_with_the_token_of_its_attempt_and_under_its_name_alone() -> None:
    value = "a long enough secret"
    [seen] = hidden({"KEY": value}, "token").values()
    assert value not in seen
    assert revealed({"KEY": seen}, "token") == {"KEY": value}
    for name, token in (("KEY", "other"), ("OTHER", "token")):
        assert revealed({name: seen}, token) != {name: value}
    assert hidden({"OTHER": value}, "token")["OTHER"] != seen
    odd = {"KEY": "mportal-hidden:?"}
    assert revealed(odd, "token") == odd
    assert revealed(hidden(odd, "token"), "token") == odd


def test_a_program_can_call_the_portal(tmp_path: Path) -> None:
    config = {"driver_token": "mpj_7_x", "envs": {"LR": 0.1, "MPORTAL_TOKEN": "mine"}}
    run = environment.run_environment(place(tmp_path, **config))
    assert run["MPORTAL_URL"] == "http://127.0.0.1:8000"
    assert (run["MPORTAL_PROJECT"], run["MPORTAL_JOB_ID"], run["MPORTAL_ATTEMPT"]) == (
        "rl",
        "42",
        "2",
    )
    assert (run["MPORTAL_TOKEN"], run["LR"]) == ("mpj_7_x", "0.1")


@pytest.mark.feature("S2.6")
def test_programs_never_find_the_runners_own_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPORTAL_TOKEN", "mpt_of_the_portals_user")
    for config in ({}, {"driver_token": "mpj_7_x"}):
        for made in (
            environment.run_environment,
            environment.setup_environment,
            environment.driver_environment,
        ):
            env = made(place(tmp_path, **config))
            assert env["MPORTAL_TOKEN"] == config.get("driver_token", "")
            assert MINIMAL["token"] not in env.values()


@pytest.mark.feature("S0.4")
def test_monarchs_time_outs_are_tuned_and_a_users_own_win(tmp_path: Path) -> None:
    envs = {"HYPERACTOR_MESH_SUPERVISION_POLL_FREQUENCY": "7s", "PYTHONPATH": "/mine"}
    tuned = environment.monarch_environment(place(tmp_path, envs=envs))
    assert tuned["HYPERACTOR_MESH_SUPERVISION_POLL_FREQUENCY"] == "7s"
    assert tuned["MONARCH_LOG_SUFFIX"] == "mportal_17_1"
    assert tuned["PYTHONPATH"] == f"{tmp_path}/state/runtime:/mine"
    assert environment.run_environment(place(tmp_path))["PYTHONPATH"].endswith("state/runtime")
    assert "HYPERACTOR_TLS_CERT" not in tuned


# Monarch's own, of `monarch.config.get_global_config()`: with less, who is busy counts as dead.
SILENCE = {
    "HYPERACTOR_MESH_GET_PROC_STATE_MAX_IDLE": 60,
    "HYPERACTOR_MESH_GET_ACTOR_STATE_MAX_IDLE": 30,
    "HYPERACTOR_MESH_ORPHAN_TIMEOUT": 60,
}


@pytest.mark.parametrize("name", SILENCE)
def test_silence_may_last_as_long_as_monarch_lets_it_and_a_users_own_limit_wins(
    tmp_path: Path, name: str
) -> None:
    assert environment.monarch_environment(place(tmp_path))[name] == f"{SILENCE[name]}s"
    own = place(tmp_path, envs={name: "9m"})
    assert environment.monarch_environment(own)[name] == "9m"
    assert environment.monarch_setting(own.config, name) == "9m"


def test_monarch_in_the_driver_listens_where_workers_reach_it(tmp_path: Path) -> None:
    name = "HYPERACTOR_MESH_DEFAULT_TRANSPORT"
    driver = environment.driver_environment(place(tmp_path, rank=0))
    assert driver[name] == "tcp://10.0.0.1:0"
    tls = {"ca_cert": "c", "ca_key": "k"}
    driver = environment.driver_environment(place(tmp_path, rank=0, tls=tls))
    assert driver[name] == "tls://10.0.0.1:0"
    assert name not in environment.monarch_environment(place(tmp_path))


def test_only_the_driver_may_report(tmp_path: Path) -> None:
    names = {"MPORTAL_RUNTIME_FILE", "MPORTAL_REPORT_FILE"}
    tls = {"ca_cert": "c", "ca_key": "k"}
    driver = environment.driver_environment(place(tmp_path, rank=0, tls=tls))
    assert names <= driver.keys()
    assert driver["HYPERACTOR_TLS_KEY"] == f"{tmp_path}/state/tls/leaf.key"
    assert names.isdisjoint(environment.monarch_environment(place(tmp_path)))
