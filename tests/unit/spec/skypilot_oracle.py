"""SkyPilot's own reading of task documents, and where the portal's differs on purpose.

`python -m tests.unit.spec.skypilot_oracle` reads a JSON list of documents from stdin and prints for
each why SkyPilot refuses it, "" where it does not. In a process of its own: importing SkyPilot
leaves threads and log handlers behind.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from tests.unit.spec.specs import nested

# What a field is tried with, besides the example of our reference.
PROBES: tuple[Any, ...] = (
    "x", "8", "2+", "10GB", "10g", "1TiB", "1ti", "16GB+", "4x", "1h30m", "nvme:100+", "x:8",
    "MOUNT", "a b", "8080-8090", "VM.Standard.E4.Flex$_2_16",
    0, 1, 8, -1, 1.5, True, [], ["x"], ["8"], [1], {}, {"X": "y"}, {"X": 1}, {"X": None},
)  # fmt: skip
# What must stand beside a field for it to mean anything.
_BESIDE: dict[str, dict[str, Any]] = {
    "file_mounts.<name>": {"name": "checkpoints", "store": "s3"},
    "file_mounts.<name>.type": {"mode": "MOUNT_CACHED"},
    "file_mounts.<name>.config.mount_cached": {"mode": "MOUNT_CACHED"},
    "resources.volumes[]": {"name": "scratch", "path": "/mnt/scratch"},
}
_NAMES = "SkyPilot, or the cloud, refuses other names later: here they are refused at once"
# Fields of which the portal refuses some values that SkyPilot takes.
REFUSED: dict[str, str] = {
    "config": "unknown settings are misspelt ones",
    "file_mounts.<name>.config": "unknown settings are misspelt ones",
    "file_mounts.<name>.config.disk_size": "a disk has a size",
    "file_mounts.<name>.name": _NAMES,
    "file_mounts.<name>.source": "paths of the server's own machine are closed",
    "name": _NAMES,
    "resources.accelerator_args.runtime_version": _NAMES,
    "resources.accelerator_args.tpu_name": _NAMES,
    "resources.accelerators": "accelerators are counted by type: one chosen by memory has none",
    "resources.any_of": "an empty list of alternatives leaves nothing to choose",
    "resources.gpus": "as resources.accelerators",
    "resources.image_id": "it is written into a template: one line, without spaces",
    "resources.ordered": "an empty list of alternatives leaves nothing to choose",
    "resources.region": "it is written into a template: one line, no shell's words",
    "resources.zone": "it is written into a template: one line, no shell's words",
    "resources.volumes[].disk_size": "a disk has a size",
    "secrets": "values are never written in a specification: names of the project's secrets are",
    "volumes": "each has the name of a volume",
    "workdir.url": "a URL of a repository: no path of the server's own machine",
}
# Fields of which the portal takes some values that SkyPilot's client refuses.
ACCEPTED: dict[str, str] = {
    "config": "SkyPilot judges its own settings, which administrators alone may write",
    "resources.accelerators": "no accelerators",
    "resources.cloud": "a plugin may have brought a cloud: SkyPilot's server judges",
    "resources.gpus": "as resources.accelerators",
    "resources.infra": "'local', and clouds of plugins: SkyPilot's server judges",
    "secrets": "a list names secrets of the project",
}


def document(field: str, value: Any) -> dict[str, Any]:
    """Return the smallest document in which `field` has `value`."""
    made = nested(field, value)
    for place, beside in _BESIDE.items():
        if field == place or field.startswith(f"{place}."):
            inner = made[place.partition(".")[0]]
            inner = inner["volumes"][0] if "[]" in place else inner["/mnt/data"]
            inner.update({key: each for key, each in beside.items() if key not in inner})
    return made


def reason_in(table: dict[str, str], field: str) -> str | None:
    """Return why the two may differ about `field`: its own reason, or that of a parent."""
    if field in table:
        return table[field]
    return table.get("config") if field.startswith("config.") else None


def answers_of_skypilot(documents: list[dict[str, Any]]) -> list[str]:
    """Return for each document why SkyPilot's `Task.from_yaml_config` refuses it, or ""."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(documents),
            env={**os.environ, "HOME": home, "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        )
    return json.loads(done.stdout.splitlines()[-1])


def _answer(content: dict[str, Any]) -> str:
    import sky

    try:
        sky.Task.from_yaml_config(content)
    except Exception as error:  # noqa: BLE001 - whatever it is, SkyPilot refuses it
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


def _main() -> None:
    documents = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        answers = [_answer(each) for each in documents]
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    _main()
