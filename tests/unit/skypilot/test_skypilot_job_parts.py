"""Parts of a SkyPilotJob that need no machine: what is asked, what is read, who is seen."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from monarch_client.skypilot import client_watch, job_cluster, task
from monarch_client.skypilot.caller import CallerOptions
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from monarch_client.skypilot.job_cluster import JobCluster
from monarch_client.skypilot.job_errors import (
    ClusterError,
    NotTakenDownError,
    PythonMismatchError,
)
from monarch_client.skypilot.job_log import JobLog, Worker, refuse_other_pythons
from monarch_client.skypilot.job_spec import JobSpec
from tests.unit.sync.archives import tree

HEAD = "\x1b[36m(head, rank=0, pid=12)\x1b[0m "


class Resources:
    """The resources, converted to YAML as by sky.Resources."""

    def to_yaml_config(self) -> dict[str, object]:
        return {"accelerators": {"H100": 8}}


@pytest.mark.parametrize(
    ("meshes", "options", "named"),
    [
        ({}, {}, "empty"),
        ({"a b": 1}, {}, "'a b'"),
        ({"_a": 1}, {}, "'_a'"),
        ({"a": 0}, {}, "0"),
        ({"a": 1}, {"monarch_port": 65535}, "65535"),
        ({"a": 1}, {"idle_minutes_to_autostop": 0}, "idle_minutes"),
        ({"a": 1}, {"reach": "fly"}, "fly"),
        ({"a": 1}, {"workdir": "/no/such/folder"}, "/no/such/folder"),
        ({"a": 1}, {"gpus": 8}, "gpus"),
    ],
)
def test_what_cannot_be_meant_is_named(meshes, options, named: str) -> None:
    with pytest.raises((ValueError, TypeError), match=named):
        JobSpec.of(meshes, None, options)


def test_resources_are_a_mapping_or_describe_themselves() -> None:
    assert JobSpec.of({"a": 1}, Resources(), {}).resources == {"accelerators": {"H100": 8}}
    with pytest.raises(TypeError, match="mapping"):
        JobSpec.of({"a": 1}, "H100:8", {})


def test_a_digest_is_that_of_the_job_and_not_of_how_it_is_reached() -> None:
    base = JobSpec.of({"a": 1, "b": 1}, None, {"secrets": {"KEY": "one"}})
    for same in ({"reach": "tunnel"}, {"ready_timeout_s": 5.0}, {"secrets": {"KEY": "two"}}):
        options = {"secrets": {"KEY": "one"}, **same}
        assert JobSpec.of({"a": 1, "b": 1}, None, options).digest == base.digest
    assert base.without_secrets().digest == base.digest
    assert JobSpec.of({"b": 1, "a": 1}, None, {"secrets": {"KEY": ""}}).digest != base.digest


def test_paths_become_whole_and_buckets_stay(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = JobSpec.of({"a": 1}, None, {"file_mounts": {"/x": "data", "/y": "s3://bucket"}})
    assert spec.file_mounts == {"/x": str(tmp_path / "data"), "/y": "s3://bucket"}


def test_what_travels_names_no_portal_and_no_secret(tmp_path: Path) -> None:
    spec = JobSpec.of({"a": 2}, {"infra": "aws"}, {"secrets": {"KEY": "hush"}})
    attempt = task.Attempt.new("cluster")
    requested = task.stage(spec, attempt, tmp_path)
    assert (requested["num_nodes"], requested["resources"]) == (2, {"infra": "aws"})
    file = tmp_path / "workdir" / attempt.job_name / "attempt.json"
    content = json.loads(file.read_text())
    assert "portal_url" not in content
    assert content["carrier"] == "none"
    assert "hush" not in file.read_text()
    # On Slurm SkyPilot makes this an argument of srun.
    assert list(requested["secrets"]) == ["KEY"]
    assert "hush" not in str(requested)
    assert file.stat().st_mode & 0o777 == 0o600


def test_secrets_in_mounted_folders_stay_behind_and_skypilot_takes_the_rest(tmp_path: Path) -> None:
    data, code = tmp_path / "data", tmp_path / "code"
    for folder in (data, code):
        (folder / "sub").mkdir(parents=True)
        (folder / ".env").write_text("TOKEN=hush")
        (folder / "sub" / "1.txt").write_text("1")
        (folder / "link").symlink_to("sub/1.txt")
    (data / ".gitignore").write_text("**/.env\n")
    (code / ".skyignore").write_text("sub/1.txt\n.env\n")
    mounts = {
        "/data": data,
        "/code": code,
        "/b": "s3://bucket",
        "/f": data / ".env",
        "/one": {"name": "one", "source": str(data)},
        "/two": {"name": "two", "source": [str(data), str(code)], "mode": "COPY"},
        "/three": {"source": "s3://bucket", "mode": "MOUNT"},
    }
    spec = JobSpec.of({"a": 1}, None, {"file_mounts": mounts})
    (tmp_path / "stage").mkdir()
    requested = task.stage(spec, task.Attempt.new("cluster"), tmp_path / "stage")["file_mounts"]
    assert (requested["/b"], requested["/f"]) == ("s3://bucket", str(data / ".env"))
    assert tree(Path(requested["/data"])) == {
        ".gitignore": "**/.env\n",
        ".skyignore": "",
        "link": "-> sub/1.txt",
        "sub": "/",
        "sub/1.txt": "1",
    }
    assert sorted(tree(Path(requested["/code"]))) == [".skyignore", "link", "sub"]
    assert tree(Path(requested["/one"]["source"])) == tree(Path(requested["/data"]))
    two = [Path(source) for source in requested["/two"]["source"]]
    assert [source.name for source in two] == ["data", "code"]
    assert [tree(source) for source in two] == [
        tree(Path(requested[at])) for at in ("/data", "/code")
    ]
    assert requested["/two"]["mode"] == "COPY"
    assert requested["/three"] == mounts["/three"]
    assert (code / ".skyignore").read_text() == "sub/1.txt\n.env\n"


def test_a_log_is_read_through_prefixes_colors_and_torn_lines() -> None:
    log = JobLog()
    text = (
        f"{HEAD}mportal: setup: begins\n{HEAD}rank 1 setup| pip\n"
        f"{HEAD}mportal: rank 1 is READY at 10.0.0.2:22222, Python 3.11\n"
        f"{HEAD}mportal: the end (WORKER_LOST): The worker of rank 1 was lost. Look.\n"
    )
    for at in range(0, len(text), 7):
        log.feed(text[at : at + 7])
    assert log.workers == {1: Worker(1, "10.0.0.2", "3.11")}
    assert log.stage == "setup"
    assert log.ending is not None
    assert log.ending.reason == "WORKER_LOST"
    assert list(log.lines)[1] == "rank 1 setup| pip"


def test_another_python_on_the_nodes_is_refused_before_monarch_is_used() -> None:
    same, other = Worker(0, "10.0.0.1", "3.11"), Worker(1, "10.0.0.2", "3.12")
    refuse_other_pythons([same], "3.11")
    with pytest.raises(PythonMismatchError, match=r"runs Python 3\.11, the workers run 3\.12"):
        refuse_other_pythons([same, other], "3.11")


def test_an_error_of_a_cluster_lists_every_place_that_was_tried() -> None:
    error = ClusterError("c", SkyPilotError("no_capacity", "Full.", {"reasons": ["a", "b"]}))
    assert str(error) == "SkyPilot could not provide cluster c (no_capacity): Full.\n  a\n  b"


def test_the_head_sees_who_is_connected_and_nodes_do_not_count(monkeypatch) -> None:
    monkeypatch.setenv("SKYPILOT_NODE_IPS", "127.0.0.1\n127.0.0.9")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert not client_watch.is_connected(port)
        with socket.create_connection(listener.getsockname(), source_address=("127.0.0.9", 0)):
            assert not client_watch.is_connected(port)
        with socket.create_connection(listener.getsockname()):
            assert client_watch.is_connected(port)
            # A worker of another job on this machine, at the same port.
            monkeypatch.setenv("SKYPILOT_NODE_IPS", "127.0.0.2")
            assert not client_watch.is_connected(port)


def test_the_head_gives_a_program_up_only_when_a_look_has_not_found_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = iter([False, True, True, False])
    monkeypatch.setattr(client_watch, "is_connected", lambda _port: next(looks))
    monkeypatch.setattr(client_watch, "LOOK_S", 0.01)
    # Each look comes later than a connection may be missed for.
    client_watch.main(22222, first_s=60.0, gone_s=0.0)
    assert next(looks, None) is None
    assert "connected for 0 s" in capsys.readouterr().out


class SilentServer:
    """A caller of a server that answers only the calls for which it was given answers."""

    def __init__(self, answers: dict[str, object]) -> None:
        self.options = CallerOptions.of_user()
        self.answers = answers

    def call(self, name: str, _args: object, _patience_s: float) -> object:
        if name not in self.answers:
            raise StillBusyError(name)
        return self.answers[name]

    def close(self) -> None:
        pass


def cluster_at(answers: dict[str, object]) -> JobCluster:
    """Return the cluster of a job at a server with these answers."""
    cluster = JobCluster("brief", JobSpec.of({"a": 1}, None, {}))
    cluster._caller = SilentServer(answers)
    return cluster


def test_a_server_that_does_not_answer_at_first_is_given_up_with_what_to_do() -> None:
    with pytest.raises(ClusterError, match=r"within 90 s.*`sky api info`") as caught:
        cluster_at({}).connect()
    assert caught.value.kind == "server_away"


@pytest.mark.parametrize("question", ["row", "ssh_access", "refuse_if_exists"])
def test_a_server_that_falls_silent_is_named_with_its_address(question: str) -> None:
    cluster = cluster_at({"address": "http://sky.example"})
    cluster.connect()
    with pytest.raises(ClusterError, match=r"server at http://sky.example did not answer `.*120 s"):
        getattr(cluster, question)()


def test_a_server_that_is_silent_at_the_end_says_that_the_cluster_may_be_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_cluster, "AGAIN_S", 0)
    with pytest.raises(NotTakenDownError, match="sky down brief"):
        cluster_at({}).ask_for_end()
