"""Started as a program: what SkyPilot's own reader makes of a task, read as JSON from stdin."""

from __future__ import annotations

import json
import sys

import sky


def main() -> None:
    task = sky.Task.from_yaml_config(json.load(sys.stdin))
    (resources,) = task.resources
    login = resources.docker_login_config
    found = {
        "image": resources.extract_docker_image(),
        "login": login and [login.username, login.password, login.server],
        "copied": task.file_mounts,
        "mounted": {
            target: [storage.source, storage.name, storage.mode.value]
            for target, storage in task.storage_mounts.items()
        },
        "volumes": task.volumes,
    }
    # SkyPilot prints as well.
    sys.stdout.write(f"\nfound {json.dumps(found)}\n")


if __name__ == "__main__":
    main()
