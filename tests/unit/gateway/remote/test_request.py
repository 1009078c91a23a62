"""The arguments of a RemoteJob that are refused, and addresses as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.gateway.remote.request import RemoteRequest, Worker, exactly_one


@pytest.mark.parametrize(
    ("hosts", "options", "named"),
    [
        ([], {}, "hosts is empty"),
        (["a b"], {}, "'a b' is no address"),
        (["a:0"], {}, "port of 'a:0'"),
        (["a", "a:26600"], {}, "a:26600 is there twice"),
        (["a"], {"meshes": {"x": 2}}, "need 2 workers, and there are 1"),
        (["a"], {"meshes": {"a b": 1}}, "'a b'"),
        (["a"], {"meshes": {"x": 0}}, "0 is not a number"),
        (["a"], {"monarch_port": 0}, "monarch_port 0"),
        (["a"], {"reach": "fly"}, "'fly'"),
        (["a"], {"certificates": "/no/such"}, "/no/such has no leaf.crt"),
        (["a"], {"sync_dirs": ["."]}, "sync_dirs is for jobs of a portal"),
        (None, {"sync_dirs": ["/no/such"]}, "sync_dirs: there is no folder at /no/such"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named(hosts, options, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        RemoteRequest.of(None, hosts, options)


def test_unknown_arguments_and_a_text_for_hosts_are_refused() -> None:
    with pytest.raises(TypeError, match="no gpus"):
        RemoteRequest.of(None, ["a"], {"gpus": 8})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(TypeError, match="list"):
        RemoteRequest.of(None, "abc", {})


@pytest.mark.parametrize("given", [{}, {"selector": "a=b", "hosts": ["a"]}])
def test_exactly_one_source_of_workers_is_given(given) -> None:
    with pytest.raises(ValueError, match="exactly one of selector, hosts"):
        exactly_one(**{"selector": None, "hosts": None, **given})


@pytest.mark.parametrize(
    ("text", "address", "channel"),
    [
        ("node7", "tcp://node7:26600", "tcp://node7:26600"),
        ("10.0.0.5:7", "tcp://10.0.0.5:7", "tcp://10.0.0.5:7"),
        ("tls://node7", "tls://node7:26600", "tls://node7:26600"),
        ("[fd00::5]:7", "tcp://[fd00::5]:7", "tcp://[fd00::5]:7"),
        ("service<2Mu>@tls://a:7", "service<2Mu>@tls://a:7", "tls://a:7"),
    ],
)
def test_addresses(text: str, address: str, channel: str) -> None:
    worker = Worker.at(text, 26600, "tcp")
    assert (worker.address, worker.channel) == (address, channel)


def test_with_certificates_workers_speak_tls(tmp_path: Path) -> None:
    for name in ("leaf.crt", "leaf.key", "ca.crt"):
        (tmp_path / name).touch()
    request = RemoteRequest.of(None, ["a"], {"certificates": tmp_path})
    assert request.hosts[0].address == "tls://a:26600"


def test_meshes_take_the_workers_in_order() -> None:
    request = RemoteRequest.of(None, ["a", "b", "c"], {"meshes": {"x": 2, "y": 1}})
    assert request.deal(request.hosts) == {
        "x": ["tcp://a:26600", "tcp://b:26600"],
        "y": ["tcp://c:26600"],
    }
    assert list(RemoteRequest.of(None, ["a"], {}).deal(request.hosts)) == ["workers"]


@pytest.mark.feature("S1.7")
def test_names_are_generated_and_differ() -> None:
    names = {RemoteRequest.of(None, ["a"], {}).name for _ in range(3)}
    assert len(names) == 3
    assert all(len(name) == len("monarch-") + 8 for name in names)


def test_selectors_are_labels_or_their_text_and_never_empty() -> None:
    assert RemoteRequest.of({"a": "b", "c": "d"}, None, {}).selector == "a=b,c=d"
    for empty in ("", {}):
        with pytest.raises(ValueError, match="every pod"):
            RemoteRequest.of(empty, None, {})
