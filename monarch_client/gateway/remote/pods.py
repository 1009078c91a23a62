"""The workers in the pods of a Kubernetes label selector. Needs the package `kubernetes`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monarch_client.attaching.errors import AttachError, WorkersUnreachableError
from monarch_client.gateway.remote.request import RemoteRequest, Worker

EVERY_S = 1.0
REQUEST_S = 15.0
# Labels with a pod's rank: of StatefulSets, JobSets, indexed Jobs, and LeaderWorkerSets.
RANK_LABELS = (
    "apps.kubernetes.io/pod-index",
    "jobset.sigs.k8s.io/job-index",
    "batch.kubernetes.io/job-completion-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
)


class SelectorError(AttachError):
    """The pods of a selector cannot be listed."""

    code = "selector_failed"


def find_workers(request: RemoteRequest) -> list[Worker]:
    """Wait until all pods of the selector are ready; their workers in rank order.

    WorkersUnreachableError: they are not, in time. SelectorError: Kubernetes did not list them.
    """
    matching = _Pods(request)
    deadline = time.monotonic() + request.ready_timeout_s
    while True:
        pods = sorted(filter(_is_wanted, matching.list()), key=_order)
        if trouble := _why_not(pods, request):
            if time.monotonic() > deadline:
                raise WorkersUnreachableError(
                    f"Namespace {request.namespace}, selector {request.selector}: {trouble} "
                    f"after {request.ready_timeout_s:.0f} s."
                )
            time.sleep(EVERY_S)
        else:
            return [_worker(pod, request) for pod in pods]


class _Pods:
    """The pods of a request, with the user's kubeconfig or the account of this pod."""

    def __init__(self, request: RemoteRequest) -> None:
        self._request = request
        self._api = _api(request.namespace)

    def list(self) -> list[Any]:
        """Return the pods. SelectorError: Kubernetes did not list them."""
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415

        namespace, selector = self._request.namespace, self._request.selector
        try:
            answer = self._api.list_namespaced_pod(
                namespace, label_selector=selector, _request_timeout=REQUEST_S
            )
        except ApiException as error:
            raise SelectorError(
                f"Kubernetes did not list the pods of namespace {namespace} "
                f"({error.status} {error.reason}). Try: kubectl get pods -n {namespace} "
                f"-l '{selector}'"
            ) from error
        except Exception as error:
            # urllib3's errors are no OSErrors.
            if type(error).__module__.partition(".")[0] != "urllib3":
                raise
            server = self._api.api_client.configuration.host
            raise SelectorError(f"Kubernetes at {server} does not answer: {error}") from error
        return list(answer.items)


def _api(namespace: str) -> Any:
    try:
        from kubernetes import client, config  # noqa: PLC0415
    except ImportError as error:
        raise SelectorError(
            "A selector needs the package kubernetes: pip install 'monarch-portal[kubernetes]'"
        ) from error
    settings = client.Configuration()
    file = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    try:
        if "KUBECONFIG" in os.environ or Path(file).exists():
            config.load_kube_config(file, client_configuration=settings)
        else:
            config.load_incluster_config(client_configuration=settings)
    except config.ConfigException as error:
        raise SelectorError(
            f"No Kubernetes cluster is configured: {error} Set KUBECONFIG, and try: kubectl get "
            f"pods -n {namespace}"
        ) from error
    return client.CoreV1Api(client.ApiClient(settings))


def _is_wanted(pod: Any) -> bool:
    """Whether the pod is not on its way out."""
    is_over = pod.status.phase in ("Succeeded", "Failed")
    return not (is_over or pod.metadata.deletion_timestamp)


def _why_not(pods: list[Any], request: RemoteRequest) -> str:
    """Return why the workers cannot be used yet; "" if they can."""
    if not pods:
        return "no pod matches"
    waiting = [f"{pod.metadata.name} ({_condition(pod)})" for pod in pods if not _is_ready(pod)]
    if waiting:
        return f"{len(waiting)} of {len(pods)} pods are not ready: {', '.join(waiting[:5])}"
    if request.size and len(pods) != request.size:
        return f"meshes need {request.size} pods, and {len(pods)} match"
    return ""


def _is_ready(pod: Any) -> bool:
    conditions = {each.type: each.status for each in pod.status.conditions or []}
    return conditions.get("Ready") == "True" and bool(pod.status.pod_ip)


def _condition(pod: Any) -> str:
    """Describe what a pod waits for."""
    for container in pod.status.container_statuses or []:
        waiting = container.state.waiting if container.state else None
        if waiting is not None and waiting.reason:
            return str(waiting.reason)
    return str(pod.status.phase)


def _order(pod: Any) -> tuple[int, list[tuple[int, str]]]:
    """Order by rank, and pods without one by name: worker-2 before worker-10."""
    labels = pod.metadata.labels or {}
    ranks = [int(labels[name]) for name in RANK_LABELS if str(labels.get(name, "")).isdecimal()]
    parts: Iterator[str] = iter(re.split(r"(\d+)", pod.metadata.name))
    natural = [(int(each), "") if each.isdecimal() else (-1, each) for each in parts]
    return (ranks[0] if ranks else 0, natural)


def _worker(pod: Any, request: RemoteRequest) -> Worker:
    port = request.monarch_port
    for container in pod.spec.containers:
        for variable in container.env or []:
            # Monarch's own jobs name the port this way.
            if variable.name == "MONARCH_PORT" and str(variable.value).isdecimal():
                port = int(variable.value)
    host = str(pod.status.pod_ip)
    channel = f"{request.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    return Worker(channel, host, port, f"pod {pod.metadata.name}", str(pod.metadata.name))
