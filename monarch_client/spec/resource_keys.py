"""The keys of `resources`: what each node of the job must be."""

from __future__ import annotations

from typing import Any

from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.locations import Cloud, Infra
from monarch_client.spec.shapes import (
    Either,
    Flag,
    KeyName,
    Listing,
    Mapping,
    Number,
    OneOf,
    Text,
    Whole,
)
from monarch_client.spec.tables import Key, Table, Tier

# As many digits as the text form has.
_MOST_OF_A_TYPE = 999_999
_COUNT = r"(?:[1-9][0-9]{0,5}(?:\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9])"
_ACCELERATOR = rf"[A-Za-z][A-Za-z0-9._-]{{0,60}}(?::{_COUNT})?"
_SIZE = r"[0-9]{1,12}(?:[kmgtp][bi]|[KMGTP][bBiI])?"
_INTERNAL = "SkyPilot's own bookkeeping, never part of a specification."

_accelerator = Text("a type and a count, such as A100:8", _ACCELERATOR)
_accelerators = Either(
    (
        Text(
            "a type and a count, such as A100:8",
            rf"{_ACCELERATOR}|\{{\s*{_ACCELERATOR}(?:\s*,\s*{_ACCELERATOR})*\s*\}}",
        ),
        Mapping(
            "types with their counts, such as {A100: 8}",
            KeyName("an accelerator such as A100 or A100:8", _ACCELERATOR),
            Number(_MOST_OF_A_TYPE),
            most=50,
            null_values=True,
        ),
        Listing(_accelerator, most=50),
    )
)
SIZE = Either((Whole(1, 10**9), Text("a size with a unit such as 1TB", _SIZE)))
_at_least = Either((Number(), Text("a least number such as 4+", r"[0-9]{1,9}(?:\.[0-9]{1,3})?\+?")))
_memory = Either(
    (
        Number(),
        Text(
            "an amount such as 64GB, or a least one such as 16+",
            r"[0-9]{1,9}(?:\.[0-9]{1,3})?(?:[kmgtpKMGTP][bBiI])?[+x]?",
        ),
    )
)
# SkyPilot writes these into its templates as they are: a line end in one would begin keys there,
# and some of those run commands on the host of its server.
_place = Text("a name in one line", r"[A-Za-z0-9][A-Za-z0-9_ .,:()@+/-]{0,199}")
# A `$` only as in Oracle's types (VM.Standard.E4.Flex$_2_16): `$(` would be a shell's command.
_machine = Text(
    "a machine type's name in one line", r"[A-Za-z0-9](?:[A-Za-z0-9_ .,:()@+/-]|\$_){0,199}"
)
_word = Text("letters, digits and . _ -", r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_image = Text("an image's name", r"[A-Za-z0-9/][A-Za-z0-9_.:/@#+=~-]{0,999}")
_PORT = Whole(1, 65_535)
_port = Either((_PORT, Text("a range such as 8080-8090", r"[0-9]{1,5}(?:-[0-9]{1,5})?")))
_TPU_KEYS = (
    Key("runtime_version", "The TPU's software version.", _word, "tpu-vm-base"),
    Key("tpu_name", "The TPU's name.", _word, "mine"),
    Key("tpu_vm", "Whether the program runs on the TPU's own host.", Flag(), True),
    Key("gcp_queued_resource", "Whether GCP queues the request.", Flag(), True),
)
_DISK_KEYS = (
    Key("name", "An existing disk's name.", Text(), "scratch"),
    Key("path", "Where it is mounted.", Text(), "/mnt/scratch"),
    Key("disk_size", "Its size in GB.", Whole(1, 10**9), 100),
    Key("disk_tier", "Its speed.", Text(), "high"),
    Key("storage_type", "Network or instance disk.", Text(), "network"),
    Key("attach_mode", "Read-only or read and write.", Text(), "read_write"),
    Key("auto_delete", "Whether it goes with the cluster.", Flag(), True),
)


def _one_place(values: dict[str, Any], path: str, findings: Findings) -> None:
    for word in ("cloud", "region", "zone"):
        if values.get("infra") is not None and word in values:
            message = f"{join(path, word)} and {join(path, 'infra')} say the same; use infra alone."
            findings.add(join(path, word), SpecCode.CONFLICT, message)


def _one_choice(values: dict[str, Any], path: str, findings: Findings) -> None:
    if "any_of" in values and "ordered" in values:
        message = f"{path} has both any_of and ordered; use one of them."
        findings.add(join(path, "ordered"), SpecCode.CONFLICT, message)


def _gpus_are_accelerators(values: dict[str, Any], path: str, findings: Findings) -> None:
    """Rename the alias `gpus` to `accelerators`, which the normal form has."""
    if "gpus" not in values:
        return
    where, gpus = join(path, "gpus"), values.pop("gpus")
    if "accelerators" in values:
        message = f"{where} and {join(path, 'accelerators')} say the same; use one of them."
        findings.add(where, SpecCode.CONFLICT, message)
        return
    values["accelerators"] = gpus
    findings.lines[join(path, "accelerators")] = findings.line_of(where) or 0


def _one_count(values: dict[str, Any], path: str, findings: Findings) -> None:
    wanted = values.get("accelerators")
    for name, count in wanted.items() if isinstance(wanted, dict) else ():
        if ":" in name and count is not None:
            where = join(join(path, "accelerators"), name)
            message = f"{where} has a count in its name and another beside it; write one of them."
            findings.add(where, SpecCode.CONFLICT, message)


_ONE_NODE = (
    Key(
        "infra",
        "Where to run: 'local', a cloud, Kubernetes context, Slurm cluster or ssh pool.",
        Infra(),
        "slurm/main",
        names="infra",
    ),
    Key("cloud", "The cloud; `infra` says it shorter.", Cloud(), "aws"),
    Key("region", "The cloud's region; `infra` says it shorter.", _place, "us-east-1"),
    Key("zone", "The region's zone; `infra` says it shorter.", _place, "us-east-1a"),
    Key(
        "accelerators",
        "GPUs or TPUs of each node, by type and count.",
        _accelerators,
        "H100:8",
        names="gpus",
    ),
    Key("gpus", "Another name of `accelerators`.", _accelerators, "H100:8"),
    Key(
        "accelerator_args",
        "Details of TPUs.",
        Table(_TPU_KEYS, words="a mapping of TPU details"),
        {"tpu_vm": True},
    ),
    Key("cpus", "Processors of each node; 4+ means at least four.", _at_least, "4+"),
    Key("memory", "Memory of each node in GB; 16+ means at least that.", _memory, "16+"),
    Key("instance_type", "The cloud's machine type by name.", _machine, "p4d.24xlarge"),
    Key("use_spot", "Whether to use machines the cloud may take back.", Flag(), True),
    Key("disk_size", "Size of each node's disk.", SIZE, 256),
    Key(
        "disk_tier",
        "Speed of that disk.",
        OneOf(("low", "medium", "high", "ultra", "best", "none")),
        "high",
    ),
    Key("network_tier", "Speed of the network between nodes.", OneOf(("standard", "best")), "best"),
    Key(
        "local_disk",
        "A disk inside the machine, by kind and least size.",
        Text(
            "a kind and size such as nvme:1000+", r"(?:nvme|ssd)(?::[0-9]{1,9}\+?)?|[0-9]{1,9}\+?"
        ),
        "nvme:1000+",
    ),
    Key("max_hourly_cost", "Dearest machine to consider, in US$ an hour.", Number(), 12.5),
    Key(
        "ports",
        "Ports to open to the outside.",
        Either((_PORT, *_port.options[1:], Listing(_port))),
        [8080, "9000-9010"],
    ),
    Key(
        "labels",
        "Tags for the cloud's own books.",
        Mapping("names with values", KeyName("a label's name", r"\S{1,200}"), Text(), most=50),
        {"team": "rl"},
    ),
    Key(
        "image_id",
        "The machine's image, or a container as docker:<image>.",
        Either(
            (
                _image,
                Mapping("regions with images", KeyName("a region", r"\S{1,100}"), _image, most=100),
            )
        ),
        "docker:python:3.11",
    ),
    Key(
        "volumes",
        "Disks of the account to attach.",
        Listing(Table(_DISK_KEYS, words="a mapping that describes a disk"), most=20),
        [{"name": "scratch", "path": "/mnt/scratch"}],
        tier=Tier.ADMIN,
        why="it can attach any disk of the cloud account.",
    ),
    Key(
        "job_recovery",
        "How SkyPilot restarts its managed jobs.",
        tier=Tier.PORTAL,
        why="the portal recovers jobs itself; use portal.retry.",
    ),
    Key(
        "autostop",
        "When SkyPilot stops an idle cluster.",
        tier=Tier.PORTAL,
        why="the portal sets it by its own policy, see portal.idle.",
    ),
    Key(
        "priority",
        "Order in the queue of SkyPilot's managed jobs.",
        tier=Tier.PORTAL,
        why="jobs wait in the portal's queue; use portal.priority.",
    ),
    Key(
        "priority_class",
        "Named order in SkyPilot's queue.",
        tier=Tier.PORTAL,
        why="jobs wait in the portal's queue; use portal.priority.",
    ),
    Key(
        "ephemeral_storage",
        "SkyPilot's former word for disk_size.",
        tier=Tier.PORTAL,
        why="it is an old name; use disk_size.",
    ),
    *(
        Key(name, "Internal to SkyPilot.", tier=Tier.PORTAL, why=_INTERNAL)
        for name in (
            "_no_missing_accel_warnings",
            "_docker_login_config",
            "_is_image_managed",
            "_requires_fuse",
            "_cluster_config_overrides",
        )
    ),
)
_alternatives = Listing(
    Table(
        _ONE_NODE,
        rules=(_one_place, _gpus_are_accelerators, _one_count),
        words="a mapping of resources",
    ),
    most=50,
    least=1,
)

RESOURCE_KEYS = (
    *_ONE_NODE,
    Key(
        "any_of",
        "Alternatives; the cheapest that can be had is used.",
        _alternatives,
        [{"infra": "aws"}, {"infra": "gcp"}],
    ),
    Key(
        "ordered",
        "Alternatives; the first that can be had is used.",
        _alternatives,
        [{"accelerators": "H100:8"}, {"accelerators": "A100:8"}],
    ),
)
RESOURCES = Table(
    RESOURCE_KEYS,
    rules=(_one_place, _one_choice, _gpus_are_accelerators, _one_count),
    words="a mapping of resources",
)
