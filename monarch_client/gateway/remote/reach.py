"""The way from this program to the first worker, which carries the traffic of the others."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from monarch_client.attaching.errors import WorkersUnreachableError
from monarch_client.attaching.tunnel import Tunnel
from monarch_client.attaching.tunnel_process import PORT
from monarch_client.attaching.watch import Look, PortLook
from monarch_client.gateway.remote.request import RemoteRequest, Worker
from monarch_client.skypilot.tunnel import why_unreachable

PROBE_S = 3.0
FORWARD_S = 60.0
FORWARDS = "Forwarding from"


class Way:
    """An address at which the first worker answers here. `close` ends a tunnel that it uses.

    `looks` has a look at each worker that is reached from here, by its name.
    """

    def __init__(self, request: RemoteRequest, workers: Sequence[Worker], folder: Path) -> None:
        first = workers[0]
        self._request = request
        self.tunnel: Tunnel | None = None
        self.gateway = first.channel
        self.looks: dict[str, Look] = {}
        why = "not tried" if request.reach == "forward" else self._probe(first)
        if not why:
            self.looks = {
                each.name: PortLook(each.host, each.port)
                for each in workers
                if each is first or not self._probe(each)
            }
        elif first.pod and request.reach != "direct":
            self._forward(first, folder, why)
        else:
            raise WorkersUnreachableError(
                f"{first.name} does not answer: {why}. Is a worker running there, and does this "
                "machine reach it?"
            )

    def close(self) -> None:
        """End the tunnel."""
        if self.tunnel is not None:
            self.tunnel.close()

    def _probe(self, worker: Worker) -> str:
        """Return why a worker is not reached directly; "" if it is."""
        if worker.scheme == "tls" and self._request.certificates is not None:
            return why_unreachable(worker.host, worker.port, self._request.certificates, PROBE_S)
        try:
            socket.create_connection((worker.host, worker.port), PROBE_S).close()
        except OSError as error:
            return str(error) or type(error).__name__
        return ""

    def _forward(self, pod: Worker, folder: Path, direct: str) -> None:
        """Open a way to a pod through Kubernetes with `kubectl port-forward`."""
        if shutil.which("kubectl") is None:
            raise WorkersUnreachableError(
                f"{pod.name} is not reached directly ({direct}), and there is no kubectl here to "
                "forward its port. Install kubectl, or run this program in the cluster."
            )
        command = ["kubectl", "port-forward", "--namespace", self._request.namespace]
        command += [f"pod/{pod.pod}", f"{PORT}:{pod.port}"]
        self.tunnel = Tunnel(command, FORWARDS, folder / "kubectl.log")
        if trouble := self.tunnel.wait(FORWARD_S):
            self.tunnel.close()
            raise WorkersUnreachableError(
                f"{pod.name} is reached neither directly ({direct}) nor by kubectl ({trouble})"
            )
        self.gateway = f"{pod.scheme}://127.0.0.1:{self.tunnel.port}"
        self.looks = {pod.name: self.tunnel.look}
