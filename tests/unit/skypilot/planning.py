"""Started as a program in a HOME with small catalogues: plans of real SkyPilot, one JSON line each.

Reads tasks as JSON from stdin. Two clouds count as enabled, which need no credentials for that.
"""

from __future__ import annotations

import json
import sys

import sky.check
from fastapi import HTTPException
from sky import clouds

from monarch_client.skypilot import server_routes


def main() -> None:
    sky.check.get_cached_enabled_clouds_or_refresh = lambda *_, **__: [
        clouds.Lambda(),
        clouds.AWS(),
    ]
    for task in json.load(sys.stdin):
        try:
            answer = server_routes.plan({"task": task})
        except HTTPException as error:
            answer = {"status": error.status_code, "detail": error.detail}
        # SkyPilot prints as well.
        sys.stdout.write(f"\nanswer {json.dumps(answer)}\n")


if __name__ == "__main__":
    main()
