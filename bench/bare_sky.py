"""The bare way to a first line: SkyPilot's own functions, called in a process that is warm.

One JSON request a line on stdin, one JSON answer a line on stdout; SkyPilot's remarks go to stderr.
`call` is launch, exec, wait, job_status or down.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import sky


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out one request and return its result."""
    call, cluster = request["call"], request.get("cluster")
    if call in {"launch", "exec"}:
        called_at = time.time()
        task = sky.Task.from_yaml_config(request["task"])
        if call == "launch":
            number = sky.launch(task, cluster_name=cluster, **request["options"])
        else:
            number = sky.exec(task, cluster_name=cluster)
        return {"called_at": called_at, "request_id": str(number)}
    if call == "wait":
        job_id, _ = sky.get(request["request_id"])
        return {"job_id": job_id}
    if call == "job_status":
        found = sky.get(sky.job_status(cluster, [request["job_id"]]))
        return {"status": next(iter(found.values())).value}
    sky.get(sky.down(cluster))
    return {}


def main() -> None:
    """Serve until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
