"""The keys of `config`: SkyPilot's settings for one task, for administrators alone."""

from __future__ import annotations

from monarch_client.spec.shapes import Anything, Flag, Listing, OneOf, Text, Whole
from monarch_client.spec.tables import Key, Table

_HOOK_KEYS = (
    Key("run", "The command.", Text(most_bytes=16 * 1024), "sync.sh", required=True),
    Key(
        "events",
        "When it runs; by default on each of them.",
        Listing(OneOf(("stop", "down", "preemption")), least=1, most=3),
        ["down"],
    ),
    Key("timeout", "Seconds it may take.", Whole(1), 60),
)


def _group(name: str, about: str, *keys: Key) -> Key:
    example = {keys[0].name: keys[0].example}
    return Key(name, about, Table(keys, words=f"a mapping of {name} settings"), example)


def _raw(name: str, about: str, example: object) -> Key:
    return Key(name, about, Anything(), example)


CONFIG_KEYS = (
    _group(
        "docker",
        "Containers on virtual machines.",
        _raw("run_options", "Further options of `docker run`.", ["--shm-size=32g"]),
    ),
    _group(
        "nvidia_gpus",
        "NVIDIA's driver.",
        Key("disable_ecc", "Whether memory is used without error correction.", Flag(), True),
    ),
    _group(
        "ssh",
        "Pools of machines reached by ssh.",
        _raw("pod_config", "What is merged into each pod.", {"spec": {}}),
        _raw("custom_metadata", "Labels and annotations.", {"labels": {"team": "rl"}}),
        _raw("provision_timeout", "Seconds to wait for machines.", 600),
    ),
    _group(
        "kubernetes",
        "Kubernetes clusters.",
        _raw("pod_config", "What is merged into each pod.", {"spec": {}}),
        _raw("custom_metadata", "Labels and annotations.", {"labels": {"team": "rl"}}),
        _raw("provision_timeout", "Seconds to wait for pods; -1 waits for ever.", 600),
        _raw("dws", "Google's Dynamic Workload Scheduler.", {"enabled": True}),
        _raw("kueue", "The Kueue queue to wait in.", {"local_queue_name": "team"}),
        _raw("quota", "The quota to charge.", {"queue": "team"}),
        _raw("remote_identity", "The service account of the pods.", "SERVICE_ACCOUNT"),
        _raw("enable_docker", "Whether Docker runs inside the pods.", True),
        _raw("set_pod_resource_limits", "Whether requests are limits too.", True),
    ),
    _group(
        "azure",
        "Azure.",
        _raw("vpc_name", "The network.", "team-network"),
        _raw("remote_identity", "The identity of the machines.", "SERVICE_ACCOUNT"),
    ),
    _group(
        "gcp",
        "Google Cloud.",
        _raw("vpc_name", "The network.", "team-network"),
        _raw("subnet_names", "The subnets.", ["a", "b"]),
        _raw("managed_instance_group", "Capacity by queued request.", {"run_duration": 3600}),
        _raw("enable_gvnic", "Whether Google's network card is used.", True),
        _raw("enable_gpu_direct", "Whether GPUs talk without the processor.", True),
        _raw("placement_policy", "How close machines stand.", "compact"),
    ),
    _group(
        "vast",
        "Vast.",
        _raw("datacenter_only", "Whether private hosts are left out.", True),
        _raw("create_instance_kwargs", "Further arguments of its API.", {"disk": 100}),
    ),
    _group(
        "slurm",
        "Slurm clusters.",
        _raw("sbatch_options", "Further options of `sbatch`.", {"qos": "high"}),
        _raw("quota", "The account and queue to charge.", {"account": "team"}),
        _raw("cpu_partition", "The partition for jobs without GPUs.", "cpu"),
    ),
    _raw("active_workspace", "SkyPilot's workspace.", "team"),
    Key(
        "hooks",
        "Commands on the head node before it is stopped, terminated or preempted.",
        Listing(Table(_HOOK_KEYS, words="a mapping with run, events and timeout"), most=32),
        [{"run": "sync.sh", "events": ["down"]}],
    ),
)
CONFIG = Table(CONFIG_KEYS, words="a mapping of SkyPilot's settings")
