"""The work of each asynchronous request. Verbs are SkyPilot's names of requests, without "sky."."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.sky_stub import places, wire
from tests.sky_stub.cloud import Cloud, Row, need_up
from tests.sky_stub.errors import CancelledRequestError, HaltedRequestError, SkyError
from tests.sky_stub.jobs import Jobs, sync_workdir
from tests.sky_stub.requests import Request, Requests

Body = dict[str, Any]
HELD, HELD_LOOK_S = "held", 0.02
STRUCK = ("error", "hang", "halt", "hold")


class Verbs:
    """The verbs over one cloud."""

    def __init__(self, cloud: Cloud, requests: Requests) -> None:
        self._cloud = cloud
        self._requests = requests
        self.all: dict[str, Callable[[Request, Body], Any]] = {
            "launch": self.launch,
            "exec": self.execute,
            "status": self.status,
            "queue": self.queue,
            "job_status": self.job_status,
            "cancel": self.cancel,
            "stop": self.stop,
            "start": self.start,
            "down": self.down,
            "autostop": self.autostop,
            "cost_report": self.cost_report,
            "check": lambda *_: {wire.WORKSPACE: {name: ["compute"] for name in self.clouds()}},
            "enabled_clouds": self.enabled_clouds,
            "slurm_node_info": self.slurm_node_info,
            "api_cancel": lambda _, body: self._requests.cancel(body.get("request_ids")),
        }

    def work(self, request: Request, body: Body) -> Any:
        """Do the work of a request, unless the plan has a fault for it."""
        request.wait(self._cloud.plan.delay_s(request.name))
        self._strike(request, request.name)
        return self.all[request.name](request, body)

    def launch(self, request: Request, body: Body) -> Any:
        """Launch a cluster and submit the task to it.

        An existing cluster is used; one whose launch broke off is repaired.
        """
        task, name = task_of(body), body["cluster_name"]
        row = self._cloud.find(name)
        nodes = int(task.get("num_nodes") or 1)
        if row is not None and nodes > row["num_nodes"]:
            raise _mismatch(name, row, nodes)
        if row is None or row["status"] != "UP":
            row = self._bring_up(request, row, task)
        if (keep := _autostop_of(task)) is not None:
            self._keep(name, *keep)
        return self._submit(request, body, task, row)

    def execute(self, request: Request, body: Body) -> Any:
        """Submit a task to a cluster that is UP."""
        task, name = task_of(body), body["cluster_name"]
        row = need_up(self._cloud, name, "execute a task")
        if int(task.get("num_nodes") or 1) > row["num_nodes"]:
            raise _mismatch(name, row, task["num_nodes"])
        return self._submit(request, body, task, row)

    def status(self, _: Request, body: Body) -> Any:
        """List the clusters that exist."""
        names = body.get("cluster_names")
        rows = [self._cloud.find(name) for name in self._cloud.names()]
        looks = self._cloud.plan["interrupted_looks"]
        return [
            wire.cluster(row, wire.seen_status(row, looks))
            for row in rows
            if row is not None and (names is None or row["name"] in names)
        ]

    def queue(self, _: Request, body: Body) -> Any:
        """List the jobs of a cluster, newest first."""
        name = body["cluster_name"]
        need_up(self._cloud, name, "get the job queue")
        return [wire.job(record) for record in Jobs(self._cloud, name).records()]

    def job_status(self, _: Request, body: Body) -> Any:
        """Return the statuses of some jobs, or of the last one."""
        need_up(self._cloud, body["cluster_name"], "get the job status")
        records = {each["id"]: each for each in Jobs(self._cloud, body["cluster_name"]).records()}
        wanted = body.get("job_ids") or list(records)[:1]
        return {str(one): records[one]["status"] if one in records else None for one in wanted}

    def cancel(self, _: Request, body: Body) -> None:
        """End jobs."""
        need_up(self._cloud, body["cluster_name"], "cancel jobs")
        numbers = None if body.get("all") or body.get("all_users") else body.get("job_ids")
        Jobs(self._cloud, body["cluster_name"]).cancel(numbers)

    def stop(self, request: Request, body: Body) -> None:
        """Stop machines, where that is possible."""
        self._need_stopping(self._cloud.get(body["cluster_name"]))
        self._requests.cancel_others(request)
        self._cloud.stop(body["cluster_name"])

    def start(self, request: Request, body: Body) -> Any:
        """Start stopped machines again."""
        self._cloud.get(body["cluster_name"])
        request.wait(self._cloud.plan["provision_s"])
        row = self._cloud.start(body["cluster_name"])
        if body.get("idle_minutes_to_autostop") is not None:
            self._keep(row["name"], body["idle_minutes_to_autostop"], bool(body.get("down")))
        return wire.handle(row)

    def down(self, request: Request, body: Body) -> None:
        """Terminate a cluster, even if other requests for it are active."""
        self._cloud.get(body["cluster_name"])
        self._requests.cancel_others(request)
        self._cloud.witness.note("down_begun", cluster=body["cluster_name"])
        self._strike(request, "down.begun")
        self._cloud.remove(body["cluster_name"])

    def autostop(self, _: Request, body: Body) -> None:
        """Set when an idle cluster is stopped or terminated."""
        row = need_up(self._cloud, body["cluster_name"], "schedule autostop")
        if body["idle_minutes"] >= 0 and not body.get("down"):
            self._need_stopping(row)
        self._keep(body["cluster_name"], body["idle_minutes"], bool(body.get("down")))

    def cost_report(self, _: Request, _body: Body) -> Any:
        """Return the bills of all clusters that exist or existed."""
        rows = {row["hash"]: row for name in self._cloud.names() if (row := self._cloud.find(name))}
        looks = self._cloud.plan["interrupted_looks"]
        return [
            wire.bill(
                bill, wire.seen_status(row, looks) if (row := rows.get(bill["hash"])) else None
            )
            for bill in self._cloud.bills()
        ]

    def clouds(self) -> list[str]:
        """List the clouds of the planned locations."""
        return sorted({place["infra"].split("/")[0] for place in self._cloud.plan["places"]})

    def enabled_clouds(self, _: Request, body: Body) -> list[str]:
        """List the clouds of the planned locations or, if expanded, the clusters of each."""
        if str(body.get("expand")).lower() != "true":
            return self.clouds()
        infras = (place["infra"].split("/") for place in self._cloud.plan["places"])
        return sorted({"/".join(parts[:2]) for parts in infras})

    def slurm_node_info(self, _: Request, body: Body) -> Any:
        """Return one row for each node of the planned locations."""
        rows = []
        for place in self._cloud.plan["places"]:
            _, region, zone = [*place["infra"].split("/"), "", ""][:3]
            for gpu, count in (place.get("accelerators") or {"": 0}).items():
                if body.get("slurm_cluster_name") in (None, region):
                    node = {"slurm_cluster_name": region, "partition": zone, "node_state": "idle"}
                    gpus = {"gpu_type": gpu, "total_gpus": count, "free_gpus": count}
                    names = (f"{zone}{index}" for index in range(place.get("capacity", 64)))
                    rows += [{"node_name": name, **node, **gpus} for name in names]
        return rows

    def _bring_up(self, request: Request, row: Row | None, task: dict[str, Any]) -> Row:
        """Take nodes and wait for them. If this ends early, they remain taken."""
        plan, name = self._cloud.plan, request.cluster
        if row is not None and row["status"] == "STOPPED":
            request.wait(plan["provision_s"])
            return self._cloud.start(name)
        nodes = int(task.get("num_nodes") or 1)
        choice = row or places.choose(self._cloud, task, nodes, name)
        wanted = {"num_nodes": nodes, "job_name": task.get("name") or "-"}
        chosen = {key: choice[key] for key in ("infra", "resources", "use_spot", "usd_per_hour")}
        row = self._cloud.begin(name, {**wanted, **chosen})
        request.say(f"Launching {name} on {row['infra']}.")
        try:
            self._strike(request, "launch.provisioning")
            request.wait(plan["provision_s"])
            self._strike(request, "launch.up")
        except (CancelledRequestError, HaltedRequestError):
            self._cloud.interrupt(name)
            raise
        return self._cloud.come_up(name)

    def _submit(self, request: Request, body: Body, task: dict[str, Any], row: Row) -> Any:
        request.wait(0)
        if task.get("workdir"):
            blob = self._cloud.state / "blobs" / str(body.get("file_mounts_blob_id"))
            mapped = (task.get("file_mounts_mapping") or {}).get(task["workdir"], task["workdir"])
            sync_workdir(self._cloud, row, blob / str(Path(mapped)).lstrip("/"))
        request.wait(0)
        job = Jobs(self._cloud, row["name"]).submit(row, task) if task.get("run") else None
        self._strike(request, f"{request.name}.submitted")
        return {"job_id": job, "handle": wire.handle(row)}

    def _keep(self, name: str, minutes: int, down: bool) -> None:
        with self._cloud.change(name) as row:
            row |= {"autostop": minutes, "to_down": down, "autostop_at": time.time()}

    def _need_stopping(self, row: Row) -> None:
        if not places.can_stop(self._cloud, row["infra"]):
            message = f"The following features are not supported by {row['infra']}: stop"
            raise SkyError("NotSupportedError", message)

    def _strike(self, request: Request, point: str) -> None:
        """Apply the fault that is planned for this point, if any."""
        fault = self._cloud.plan.take(STRUCK, point, request.cluster)
        if not fault:
            return
        if fault["do"] == "hang":
            request.wait(1e6)
        if fault["do"] == "hold":
            self._stand_at(point, request)
            return
        if fault["do"] == "halt":
            raise HaltedRequestError
        raise error_of(fault)

    def _stand_at(self, point: str, request: Request) -> None:
        """Wait until a test removes the file, or the request is cancelled."""
        file = self._cloud.state / HELD / point
        file.parent.mkdir(exist_ok=True)
        file.touch()
        while file.exists():
            request.wait(HELD_LOOK_S)


def error_of(fault: dict[str, Any]) -> SkyError:
    """Build the exception that a fault specifies."""
    attributes = dict(fault.get("attributes") or {})
    if "history" in fault:
        attributes["failover_history"] = [RuntimeError(each) for each in fault["history"]]
    return SkyError(
        fault.get("type", "RuntimeError"), fault.get("message", "planned"), **attributes
    )


def task_of(body: Body) -> dict[str, Any]:
    """Return the task of a request: the last of its documents.

    The first document holds the name of the whole.
    """
    documents = [each for each in yaml.safe_load_all(body["task"]) if each]
    task = documents[-1]
    return {"name": documents[0].get("name"), **task}


def _autostop_of(task: dict[str, Any]) -> tuple[int, bool] | None:
    resources = task.get("resources") or {}
    alternatives = [resources, *(resources.get("any_of") or ()), *(resources.get("ordered") or ())]
    autostop = next((each["autostop"] for each in alternatives if each.get("autostop")), None)
    if not autostop:
        return None
    if isinstance(autostop, dict):
        return int(autostop.get("idle_minutes", 5)), bool(autostop.get("down"))
    return int(autostop), False


def _mismatch(name: str, row: Row, nodes: int) -> SkyError:
    message = f"Cluster {name} has {row['num_nodes']} nodes; {nodes} were requested."
    return SkyError("ResourcesMismatchError", message)
