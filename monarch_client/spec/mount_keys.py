"""The keys under `file_mounts` and `volumes`: what else is put onto the nodes."""

from __future__ import annotations

from typing import Any

from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.locations import TARGET, Source
from monarch_client.spec.resource_keys import SIZE
from monarch_client.spec.shapes import (
    Anything,
    Either,
    Flag,
    KeyName,
    Listing,
    Mapping,
    OneOf,
    Shape,
    Text,
    Whole,
)
from monarch_client.spec.tables import Key, Table, Tier

_INTERNAL = "SkyPilot's own bookkeeping, never part of a specification."
_ANY_DISK = "it can attach any disk of the cloud account."
_amount = Text("an amount such as 64M", r"[0-9]{1,12}[bkmgtpBKMGTP]?")
_number = r"[-+]?(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})"
_time = Text("a length of time such as 10s", rf"(?:{_number}(?:ms|[smhdwMy])){{1,7}}|{_number}")

_CACHED_KEYS = (
    Key("transfers", "Files sent at the same time.", Whole(1, 1000), 8),
    Key("buffer_size", "Memory for each open file.", _amount, "64M"),
    Key("vfs_cache_max_size", "Most that is cached on the node.", _amount, "20G"),
    Key("vfs_cache_max_age", "How long it is cached.", _time, "1h"),
    Key("vfs_read_ahead", "How much is read ahead.", _amount, "128M"),
    Key("vfs_read_chunk_size", "Size of one read.", _amount, "32M"),
    Key("vfs_read_chunk_streams", "Reads at the same time.", Whole(0, 1000), 16),
    Key("vfs_write_back", "How long a write may wait.", _time, "10s"),
    Key("read_only", "Whether writing is refused.", Flag(), True),
)
_MOUNT_KEYS = (
    Key("read_only", "Whether writing is refused.", Flag(), True),
    Key(
        "hf_mount_args",
        "Further arguments of the program that mounts a Hugging Face bucket.",
        Listing(Text()),
        ["--verbose"],
        tier=Tier.ADMIN,
        why="they go to a program on the node word by word.",
    ),
)


def _disk(name: str, about: str, shape: Shape, example: Any) -> Key:
    return Key(name, about, shape, example, tier=Tier.ADMIN, why=_ANY_DISK)


_CONFIG_KEYS = (
    _disk("disk_size", "Size, where the store is a disk.", SIZE, 100),
    _disk("disk_tier", "Speed, where the store is a disk.", Text(), "high"),
    _disk("storage_type", "Network or instance disk.", Text(), "network"),
    _disk("attach_mode", "Read-only or read and write.", Text(), "read_write"),
    Key("mount_cached", "How MOUNT_CACHED caches.", Table(_CACHED_KEYS), {"transfers": 8}),
    Key("mount", "How MOUNT mounts.", Table(_MOUNT_KEYS), {"read_only": True}),
)
_bucket = Source(buckets=True, uploads=False)
STORAGE_KEYS = (
    Key(
        "name",
        "The bucket's name; it is created if there is none.",
        Text(
            "a bucket's name", r"[A-Za-z0-9][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_-]+)*", most_bytes=255
        ),
        "checkpoints",
    ),
    # No list of them: SkyPilot takes one for paths of its client's own machine.
    Key("source", "An existing bucket's URL.", _bucket, "s3://datasets/imagenet"),
    Key(
        "store",
        "Whose bucket it is.",
        OneOf(
            (
                "s3",
                "gcs",
                "azure",
                "r2",
                "ibm",
                "oci",
                "nebius",
                "coreweave",
                "hf",
                "vastdata",
                "volume",
            )
        ),
        "s3",
    ),
    Key("persistent", "Whether a created bucket outlives the job.", Flag(), True),
    Key(
        "mode",
        "Mounted, copied at the start, or mounted with a cache.",
        OneOf(("MOUNT", "COPY", "MOUNT_CACHED")),
        "MOUNT",
    ),
    Key(
        "type",
        "A preset for MOUNT_CACHED.",
        OneOf(("MODEL_CHECKPOINT_RO", "MODEL_CHECKPOINT_RW", "DATASET_RO", "DATASET_RW")),
        "DATASET_RO",
    ),
    Key("config", "Details of the mount.", Table(_CONFIG_KEYS), {"mount": {"read_only": True}}),
    *(
        Key(name, "Internal to SkyPilot.", tier=Tier.PORTAL, why=_INTERNAL)
        for name in ("_is_sky_managed", "_bucket_sub_path", "_force_delete")
    ),
)


def _no_disk(values: dict[str, Any], path: str, findings: Findings) -> None:
    if values.get("store") == "volume" and not findings.admin:
        where = join(path, "store")
        message = f"{where}: volume is for administrators of this installation: {_ANY_DISK}"
        findings.add(where, SpecCode.ADMIN_ONLY, message)


def _cached_is_mounted_so(values: dict[str, Any], path: str, findings: Findings) -> None:
    """Refuse what belongs to another `mode`; SkyPilot's is MOUNT where none is given."""
    mode, config = values.get("mode") or "MOUNT", values.get("config")
    wanted = {"type": "MOUNT_CACHED"} if values.get("type") is not None else {}
    for key, its_mode in (("mount_cached", "MOUNT_CACHED"), ("mount", "MOUNT")):
        if isinstance(config, dict) and config.get(key) is not None:
            wanted[f"config.{key}"] = its_mode
    for key, its_mode in wanted.items():
        if mode != its_mode:
            message = f"{path}.{key} goes with `mode: {its_mode}`; here it is {mode}."
            findings.add(f"{path}.{key}", SpecCode.CONFLICT, message)


def _a_bucket(values: dict[str, Any], path: str, findings: Findings) -> None:
    if "name" not in values and "source" not in values:
        message = f"{path} names no bucket: give source, or name for a new one."
        findings.add(path, SpecCode.MISSING, message)


FILE_MOUNTS: Shape = Mapping(
    "paths on the nodes, each with its source",
    TARGET,
    Either(
        (
            Source(buckets=True),
            Table(
                STORAGE_KEYS,
                rules=(_a_bucket, _no_disk, _cached_is_mounted_so),
                words="a mapping that describes a bucket",
            ),
        )
    ),
)


def refuse_inline_volumes(values: dict[str, Any], path: str, findings: Findings) -> None:
    """Refuse a volume described in place: it can name a path of the host."""
    volumes = values.get("volumes")
    for target, volume in (volumes or {}).items() if isinstance(volumes, dict) else ():
        if isinstance(volume, dict) and not findings.admin:
            where = join(join(path, "volumes"), target)
            message = (
                f"{where} describes a volume in place, which is for administrators of this "
                "installation: it can name paths of the host. Name a volume that exists."
            )
            findings.add(where, SpecCode.ADMIN_ONLY, message)


VOLUMES: Shape = Mapping(
    "paths on the nodes, each with a volume's name",
    TARGET,
    Either(
        (
            Text("a volume's name", r"[A-Za-z0-9][A-Za-z0-9._-]{0,250}"),
            Mapping("a description of a volume", KeyName("a word", r"\w{1,60}"), Anything()),
        )
    ),
    most=100,
)
