"""The calls to SkyPilot. With the plugin of its server, the only module that imports sky.

Plain data in, plain data out: the caller is another process (`caller.py`). Long calls answer with
the id of a request that goes on at SkyPilot's server; `result` returns how it ended.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import requests
import sky
from sky.client import sdk
from sky.server import common as server_common

from monarch_client.skypilot import rows
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from monarch_client.skypilot.translate import error_of
from monarch_client.skypilot.waiting import accepted, ended, is_open

# How long one call waits for a request of its own, and for one that it is only asked about.
PATIENCE_S = 300.0
RESULT_PATIENCE_S = 15.0
LOST = (requests.exceptions.Timeout, requests.exceptions.ConnectionError)
FIELDS = ["request_id", "name", "status", "created_at", "finished_at", "status_msg"]
MOST_REQUESTS = 50
OWN_ROUTE_TIMEOUT_S = (5, 120)

_rates: dict[str, float] = {}
# The machines that each rate in `_rates` is for, by cluster hash.
_rated: dict[str, str] = {}


def server_info() -> rows.Row:
    """Return {version, api_version, status, has_plugin: whether a portal's plugin answers}."""
    info = sdk.api_info()
    return {
        "version": rows.read(info, "version", ""),
        "api_version": rows.read(info, "api_version", ""),
        "status": rows.value_of(rows.read(info, "status", "")),
        "has_plugin": _own_route("GET", "/mportal/about") is not None,
    }


def address() -> str:
    """Return the address of the server, which answers; without a password that it may hold."""
    return _without_password(server_common.get_server_url())


def validate(task: rows.Row) -> None:
    """Validate a task. SkyPilotError: invalid, not_supported; with SkyPilot's reason."""
    sdk.validate(_dag(task))


def launch(
    cluster_name: str,
    task: rows.Row,
    *,
    idle_minutes: int | None = None,
    down: bool = False,
    retry_until_up: bool = False,
    fast: bool = False,
) -> str:
    """Request a cluster with this task on it; return the id of the request.

    Safe to repeat: the id of a launch under this name that is under way is given again.
    """
    under_way = [one for one in requests_of(cluster_name) if is_open(one, "launch")]
    if under_way:
        return str(under_way[0]["request_id"])

    def ask() -> Any:
        return sky.launch(
            _task(task),
            cluster_name=cluster_name,
            idle_minutes_to_autostop=idle_minutes,
            down=down,
            retry_until_up=retry_until_up,
            fast=fast,
        )

    return _accepted(cluster_name, "launch", ask)


def execute(cluster_name: str, task: rows.Row) -> str:
    """Request one more job on a cluster that is up; return the id of the request."""
    return _accepted(cluster_name, "exec", lambda: sky.exec(_task(task), cluster_name=cluster_name))


def requests_of(cluster_name: str) -> list[rows.Row]:
    """Return the requests for this cluster since SkyPilot's server started, newest first."""
    found = sdk.api_status(
        all_status=True, limit=MOST_REQUESTS, fields=FIELDS, cluster_name=cluster_name
    )
    return sorted(map(rows.request_row, found), key=lambda row: -row["created_at"])


def result(request_id: str) -> Any:
    """Return the result of a request: {job_id} for launch and exec, else plain data or None.

    SkyPilotError: what it ended with; not_found: no such request, perhaps as the server was started
    again. StillBusyError: it has not ended yet.
    """
    payload = _finished(request_id, RESULT_PATIENCE_S)
    value = sky.get(request_id)
    if rows.request_row(payload)["name"] in {"launch", "exec"}:
        return {"job_id": value[0] if isinstance(value, tuple) else None}
    return rows.plain(value)


def status(names: list[str] | None = None) -> list[rows.Row]:
    """Return the existing clusters of these names, or all, as the server last knew them."""
    found = _wait_for(sky.status(cluster_names=names, all_users=True))
    return [rows.cluster_row(record, _rates_for(found)) for record in found]


def jobs(cluster_name: str) -> list[rows.Row]:
    """Return the jobs of a cluster. SkyPilotError: not_found, not_up."""
    return [rows.job_row(one) for one in _wait_for(sky.queue(cluster_name, all_users=True))]


def cancel_job(cluster_name: str, job_id: int) -> str:
    """Request the end of a job; return the id of the request."""
    return str(sky.cancel(cluster_name, job_ids=[job_id]))


def cancel_request(request_id: str) -> str:
    """Request the end of a request. Machines that it has got stay: terminate the cluster then."""
    return str(sky.api_cancel(request_id, all_users=True, silent=True))


def stop(cluster_name: str) -> str:
    """Request that the machines are stopped and kept; return the id of the request."""
    return _accepted(cluster_name, "stop", lambda: sky.stop(cluster_name))


def start(cluster_name: str, idle_minutes: int | None = None, *, down: bool = False) -> str:
    """Request the start of stopped machines; return the id of the request."""

    def ask() -> Any:
        return sky.start(cluster_name, idle_minutes_to_autostop=idle_minutes, down=down)

    return _accepted(cluster_name, "start", ask)


def down(cluster_name: str) -> str:
    """Request the termination of the cluster; return the id of the request."""
    return _accepted(cluster_name, "down", lambda: sky.down(cluster_name))


def autostop(cluster_name: str, idle_minutes: int, *, down: bool = False) -> str:
    """Have SkyPilot stop, or take down, the cluster when idle; a negative number: never."""

    def ask() -> Any:
        return sky.autostop(cluster_name, idle_minutes, down=down)

    return _accepted(cluster_name, "autostop", ask)


def cost_report(days: int | None = None) -> list[rows.Row]:
    """Return the cost of each cluster, terminated ones included. `days` back; None: 30."""
    return [rows.cost_row(one) for one in _wait_for(sky.cost_report(days=days))]


def clouds() -> list[rows.Row]:
    """Check all credentials, which takes seconds; return [{cloud, context, enabled, reason}].

    `context` distinguishes several clusters of one kind. Without the plugin reasons are empty.
    """
    by_workspace = _wait_for(sdk.check(None, verbose=False))
    known = _own_route("GET", "/mportal/clouds")
    if known is not None:
        return list(known)
    enabled = {cloud.lower() for clouds_ in by_workspace.values() for cloud in clouds_}
    return [
        {"cloud": cloud, "context": "", "enabled": True, "reason": ""} for cloud in sorted(enabled)
    ]


def gpus() -> list[rows.Row]:
    """Return [{infra, node, gpu, total, free}] of the user's Slurm and Kubernetes clusters."""
    found: list[rows.Row] = []
    for infra in _wait_for(sdk.enabled_clouds(expand=True)):
        kind, _, name = str(infra).partition("/")
        if kind.lower() == "slurm":
            nodes = _wait_for(sdk.slurm_node_info(name or None))
            found += rows.slurm_gpus(str(infra), nodes)
        elif kind.lower() in {"kubernetes", "ssh"}:
            context = f"ssh-{name}" if kind.lower() == "ssh" and name else name or None
            nodes = _wait_for(sdk.kubernetes_node_info(context))
            found += rows.kubernetes_gpus(str(infra), nodes)
    return found


def plan(task: rows.Row) -> rows.Row:
    """Return {candidates, reasons}: where it could run, for how much. See `server_routes.plan`."""
    found = _own_route("POST", "/mportal/plan", json={"task": task})
    if found is None:
        raise SkyPilotError("not_supported", "This SkyPilot server has no plugin of a portal.")
    return dict(found)


def read_log(
    cluster_name: str, job_id: int, tail: int = 0, *, follow: bool = True
) -> Iterator[str | None]:
    """Yield a job's log as it comes, from its last `tail` lines on (0: all), to the job's end.

    Pieces are not always whole lines. None: nothing new, and still there.
    """
    yield from sky.tail_logs(cluster_name, job_id, follow=follow, tail=tail, preload_content=False)


def ssh_access(cluster_name: str) -> rows.Row:
    """Return {host, port, user, key, proxy_command}: how ssh reaches the head, or its gateway.

    `key` is a private key, PEM. SkyPilotError: not_found.
    """
    found = _wait_for(
        sky.status(cluster_names=[cluster_name], all_users=True, _include_credentials=True)
    )
    if not found:
        raise SkyPilotError("not_found", f"SkyPilot has no cluster {cluster_name}.")
    return rows.access_row(found[0])


def _task(task: rows.Row) -> sky.Task:
    if not isinstance(task, dict):
        raise SkyPilotError("invalid", "A task is a mapping.")
    return sky.Task.from_yaml_config(task)


def _dag(task: rows.Row) -> sky.Dag:
    with sky.Dag() as dag:
        dag.add(_task(task))
    return dag


def _accepted(cluster_name: str, name: str, ask: Callable[[], Any]) -> str:
    return accepted(name, ask, lambda: requests_of(cluster_name), lost=LOST)


def _wait_for(request_id: Any) -> Any:
    """Return the result of a request of ours; wait for PATIENCE_S at most."""
    try:
        _finished(str(request_id), PATIENCE_S)
    except StillBusyError:
        message = f"SkyPilot's server has not answered for {PATIENCE_S:.0f} s."
        raise SkyPilotError("server_away", message) from None
    return sky.get(request_id)


def _finished(request_id: str, patience_s: float) -> Any:
    """Return the request once it has ended. Never `sky.get` before: that waits without bound."""

    def look() -> Any:
        return sdk.api_status(request_ids=[request_id], fields=FIELDS)

    return ended(look, request_id, patience_s)


def _rates_for(found: list[Any]) -> dict[str, float]:
    """Return dollars an hour by cluster hash.

    A launch keeps its hash when it moves on to another place, where machines cost something else.
    """
    machines = {rows.read(record, "cluster_hash"): rows.machines_of(record) for record in found}
    if any(key not in _rates or _rated.get(key) != what for key, what in machines.items()):
        _rates.update(_own_route("GET", "/mportal/rates") or {})
        _rated.update(machines)
    return _rates


def _own_route(method: str, path: str, **kwargs: Any) -> Any:
    """Return our plugin's answer; None from a server without it. SkyPilotError: it refused."""
    answer = server_common.make_authenticated_request(
        method, path, timeout=OWN_ROUTE_TIMEOUT_S, **kwargs
    )
    if answer.status_code in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
        return None
    if answer.status_code == HTTPStatus.BAD_REQUEST:
        detail = answer.json()["detail"]
        raise SkyPilotError("invalid", detail["message"], {"type": detail["type"]})
    answer.raise_for_status()
    return answer.json()


def _ready(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `call` so that the server is checked first: SkyPilot needs its version per thread."""

    @functools.wraps(call)
    def after_a_look(**args: Any) -> Any:
        if "SKYPILOT_DISABLE_LOCAL_API_SERVER" not in os.environ:
            _reach_own_server()
        condition, _ = server_common.check_server_healthy()
        if condition is server_common.ApiServerStatus.NEEDS_AUTH:
            raise SkyPilotError("permission", "SkyPilot's server does not take our token.")
        return call(**args)

    return after_a_look


def _reach_own_server() -> None:
    """Start a user's own server as `sky` would; where it is away, the error names it."""
    try:
        server_common.check_server_healthy_or_start_fn()
    except Exception as raised:
        error = error_of(raised)
        if error.kind != "server_away":
            raise
        message = (
            f"SkyPilot's server at {address()} does not answer. Check it with `sky api info`, or "
            "name another one in SKYPILOT_API_SERVER_ENDPOINT or ~/.sky/config.yaml."
        )
        raise SkyPilotError(error.kind, message, error.detail) from raised


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


_OFFERED: Final = (
    *(
        address,
        server_info,
        validate,
        launch,
        execute,
        requests_of,
        result,
        status,
        jobs,
        cancel_job,
    ),
    *(cancel_request, stop, start, down, autostop, cost_report, clouds, gpus, plan, read_log),
    ssh_access,
)
CALLS: Final[dict[str, Callable[..., Any]]] = {call.__name__: _ready(call) for call in _OFFERED}
