"""A server with the part of Kubernetes' API that lists pods, and a kubeconfig for it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: test
clusters: [{{name: test, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: test, user: {{token: {token}}}}}]
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
"""
TOKEN = "kube-token"


def pod(name: str, host: str, **more: Any) -> dict[str, Any]:
    """Return a pod as the API lists it; `more`: labels, ready, phase, reason, env, deleted."""
    waiting = {"waiting": {"reason": more["reason"]}} if "reason" in more else {"running": {}}
    status = {
        "phase": more.get("phase", "Running"),
        "podIP": host,
        "conditions": [{"type": "Ready", "status": str(more.get("ready", True))}],
        "containerStatuses": [
            {"name": "worker", "state": waiting, "image": "i", "imageID": "i", "ready": True,
             "restartCount": 0}
        ],
    }  # fmt: skip
    metadata = {"name": name, "labels": {"app": "ppo", **more.get("labels", {})}}
    if more.get("deleted"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    environment = [{"name": key, "value": value} for key, value in more.get("env", {}).items()]
    spec = {"containers": [{"name": "worker", "env": environment}]}
    return {"metadata": metadata, "spec": spec, "status": status}


class KubernetesApi:
    """The server. `pods` are those of namespace "research"; set `code` to refuse requests."""

    def __init__(self, folder: Path) -> None:
        self.pods: list[dict[str, Any]] = []
        self.code = 200
        self.lists = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.kubeconfig = folder / "kubeconfig"
        port = self._server.server_address[1]
        self.kubeconfig.write_text(KUBECONFIG.format(port=port, token=TOKEN))

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def matching(self, selector: str) -> list[dict[str, Any]]:
        """Return the pods with all labels of an equality selector."""
        wanted = dict(each.split("=") for each in selector.split(","))
        return [each for each in self.pods if wanted.items() <= each["metadata"]["labels"].items()]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                api.lists += 1
                url = urlsplit(self.path)
                is_known = self.headers["Authorization"] == f"Bearer {TOKEN}"
                code = api.code if is_known else 401
                if url.path != "/api/v1/namespaces/research/pods":
                    code = 404
                selector = parse_qs(url.query)["labelSelector"][0]
                items = api.matching(selector) if code == 200 else []
                body = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items})
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_arguments: object) -> None:
                pass

        return Handler
