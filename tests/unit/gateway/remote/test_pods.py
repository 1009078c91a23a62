"""The workers that a label selector finds, through a served API."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from monarch_client.attaching.errors import WorkersUnreachableError
from monarch_client.gateway.remote import pods
from monarch_client.gateway.remote.pods import SelectorError, find_workers
from monarch_client.gateway.remote.request import RemoteOptions, RemoteRequest
from tests.kubernetes_api import KubernetesApi, pod
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S1.6")


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    monkeypatch.setattr(pods, "EVERY_S", 0.01)
    api = KubernetesApi(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
    yield api
    api.close()


def request(ready_timeout_s: float = 0.2, meshes: dict[str, int] | None = None) -> RemoteRequest:
    options: RemoteOptions = {"namespace": "research", "ready_timeout_s": ready_timeout_s}
    return RemoteRequest.of({"app": "ppo"}, None, {**options, "meshes": meshes})


def test_pods_are_ordered_by_rank_and_else_by_number(api: KubernetesApi) -> None:
    api.pods = [pod(f"w-{n}", f"10.0.0.{n}") for n in (10, 2, 1)]
    assert [worker.pod for worker in find_workers(request())] == ["w-1", "w-2", "w-10"]
    label = "jobset.sigs.k8s.io/job-index"
    api.pods = [pod(f"w-{n}", f"10.0.0.{n}", labels={label: str(9 - n)}) for n in (1, 2)]
    assert [worker.pod for worker in find_workers(request())] == ["w-2", "w-1"]


def test_the_port_is_that_of_the_pod_and_other_pods_are_left_alone(api: KubernetesApi) -> None:
    api.pods = [
        pod("a", "10.0.0.1", env={"MONARCH_PORT": "7"}),
        pod("b", "10.0.0.2", labels={"app": "other"}),
        pod("c", "10.0.0.3", phase="Failed"),
        pod("d", "10.0.0.4", deleted=True),
    ]
    assert [worker.address for worker in find_workers(request())] == ["tcp://10.0.0.1:7"]


def test_pods_that_are_not_ready_are_awaited(api: KubernetesApi) -> None:
    api.pods = [pod("a", "10.0.0.1", ready=False)]
    found: list[object] = []
    waiting = threading.Thread(
        target=lambda: found.extend(find_workers(request(ready_timeout_s=30)))
    )
    waiting.start()
    assert eventually(lambda: api.lists > 1)
    api.pods = [pod("a", "10.0.0.1")]
    waiting.join(30)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("listed", "meshes", "named"),
    [
        ([], None, "no pod matches"),
        ([pod("a", "", ready=False, reason="ImagePullBackOff")], None, r"a \(ImagePullBackOff\)"),
        ([pod("a", "10.0.0.1")], {"x": 2}, "need 2 pods, and 1 match"),
    ],
)
def test_pods_that_never_come_are_named_with_the_reason(
    api: KubernetesApi, listed, meshes, named: str
) -> None:
    api.pods = listed
    with pytest.raises(WorkersUnreachableError, match=named):
        find_workers(request(meshes=meshes))


def test_a_refusal_says_what_to_try(api: KubernetesApi) -> None:
    api.code = 403
    with pytest.raises(SelectorError, match=r"403 Forbidden.*kubectl get pods -n research"):
        find_workers(request())


def test_a_cluster_that_does_not_answer_is_named(api: KubernetesApi) -> None:
    api.close()
    with pytest.raises(SelectorError, match="Kubernetes at http"):
        find_workers(request())
