"""The table of known failures: how each shows itself, what it means and what helps."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobs.statuses import StopReason


class Failure(NamedTuple):
    """A kind of failure, recognized by a line that matches `pattern`; without one by the reason."""

    code: str
    title: str
    pattern: re.Pattern[str] | None
    fix: str
    reasons: frozenset[StopReason] = frozenset()  # it is looked for in these alone; empty: all
    is_effect: bool = False  # of the end of another rank: the log of all ranks proves nothing


# Of a process of which nothing else is known; its node's memory is the evidence then.
KILLED = "killed"

# Lines that successful jobs print too: Monarch's on machines without a GPU, and the runner's about
# helpers that it starts again or does without.
USUAL = re.compile(
    r"^\[RdmaXcel\]|\bRDMATcpFallbackWarning\b"
    r"|The process that connects laptops is started again: |The meshes are not watched: "
)
_OF_PLACES = frozenset({StopReason.BACKEND, StopReason.NO_CAPACITY})


def _failure(
    code: str, title: str, pattern: str, fix: str, *reasons: StopReason, is_effect: bool = False
) -> Failure:
    compiled = re.compile(pattern, re.IGNORECASE) if pattern else None
    return Failure(code, title, compiled, fix, frozenset(reasons), is_effect)


FAILURES: tuple[Failure, ...] = (
    _failure(
        "gpu_hardware",
        "A GPU reports a hardware fault",
        # Of Xid's numbers those that speak of the machine, not of the program.
        r"uncorrectable (?:ECC|NVLink) error|double.bit ECC error|GPU has fallen off the bus"
        r"|NVRM: Xid \([\w:.]{1,40}\): (?:48|62|64|74|79|94|95|119|120|140)\b",
        "Later attempts avoid this node if the backend supports it. Report it to its "
        "administrator: `nvidia-smi -q -d ECC,ROW_REMAPPER` and `dmesg` there show details.",
    ),
    _failure(
        "cuda_oom",
        "The GPU ran out of memory",
        r"CUDA out of memory|OutOfMemoryError: CUDA|CUBLAS_STATUS_ALLOC_FAILED"
        r"|CUDA error: out of memory|cudaErrorMemoryAllocation",
        "Use less: a smaller batch, gradient checkpointing, sharding over more GPUs; or request "
        "GPUs with more memory in `resources.accelerators`.",
    ),
    _failure(
        "torch_without_cuda",
        "This PyTorch was built without CUDA",
        r"Torch not compiled with CUDA enabled",
        "In `setup` install a build of torch for the CUDA of the nodes.",
    ),
    _failure(
        "nccl_missing",
        "NCCL is missing",
        r"libnccl\.so[.\d]*\b.{0,40}(?:cannot open|no such file|not found)"
        r"|(?:doesn't|does not) have NCCL built in|ProcessGroupNCCL is only supported with GPUs",
        "NCCL needs GPUs, and a build of torch for them. On nodes without GPUs use the backend "
        '`gloo`: `torch.distributed.init_process_group("gloo")`.',
    ),
    _failure(
        "no_processes_per_node",
        "torchrun was started with 0 processes per node",
        # torch's own check of the number has no message.
        r"elastic/agent/server/api\.py\W.{0,20}\bin __post_init__|assert self\.local_world_size > 0"
        r"|Unsupported nproc_per_node value",
        "`SKYPILOT_NUM_GPUS_PER_NODE` is 0 on nodes without GPUs, as SkyPilot sets it. Request "
        "GPUs in `resources.accelerators`, or write the number of processes: `--nproc_per_node=1`.",
    ),
    _failure(
        "gpu_driver_missing",
        "The node has no NVIDIA driver, or the job no GPU",
        r"libcuda\.so(?:\.1)?\b.{0,40}(?:cannot open|no such file|not found)"
        r"|Found no NVIDIA driver|NVIDIA-SMI has failed|no CUDA-capable device is detected"
        r"|CUDA driver version is insufficient|CUDA_ERROR_NO_DEVICE|failed call to cuInit",
        "Request GPUs in `resources.accelerators`, and use an image whose nodes have the driver: "
        "`nvidia-smi` in `setup` shows whether it is there. Without GPUs use torch for CPUs.",
    ),
    _failure(
        "shared_memory",
        "The node's shared memory is too small",
        r"insufficient shared memory|killed by signal: Bus error|unable to (?:open"
        r"|write to) shared memory|No space left on device.{0,40}/dev/shm",
        "Use fewer data loader workers, or give the container a larger /dev/shm.",
    ),
    _failure(
        "disk_full",
        "A disk is full",
        r"No space left on device|Disk quota exceeded|\[Errno 28\]|\[Errno 122\]|\bENOSPC\b",
        "Write less, or elsewhere: a bucket in `file_mounts`, a volume, or more in "
        "`resources.disk_size`.",
    ),
    _failure(
        "too_many_files",
        "Too many files or sockets are open",
        r"Too many open files|\[Errno 24\]|\bEMFILE\b|received 0 items of ancdata",
        "Raise the limit at the start of `run` (`ulimit -n 65536`), close what is not needed, or "
        "use fewer data loader workers.",
    ),
    _failure(
        "python_mismatch",
        "Driver and workers run different versions of Python",
        r"The driver runs Python \S+, but the workers run|run different versions of Python"
        r"|code\(\) argument \d+ must be|code expected at most \d+ arguments"
        r"|unsupported pickle protocol|bad marshal data",
        "Use the same minor version of Python for `run` and for the workers: one image, or one "
        "environment that `setup` makes on every node.",
    ),
    _failure(
        "image_pull",
        "The container's image can't be fetched",
        r"ErrImagePull|ImagePullBackOff|pull access denied|manifest (?:unknown|for \S+ not found)"
        r"|failed to resolve reference|toomanyrequests|reached your (?:unauthenticated )?pull rate"
        r"|repository does not exist|pyxis: failed to import",
        "Check the name and tag in `resources.image_id`, that the nodes may read the registry, and "
        "its limits.",
    ),
    _failure(
        "quota_exceeded",
        "The cloud account's quota is used up",
        r"Quota(?:s)?\b.{0,80}\bexceeded|exceeded quota|VcpuLimitExceeded|QuotaExceeded"
        r"|LimitExceeded|QOSMax\w+|AssocGrp\w+Limit",
        "Request a higher quota from the cloud, stop what runs there, or name another region or "
        "cloud in `resources`.",
        *_OF_PLACES,
    ),
    _failure(
        "cloud_credentials",
        "The cloud refuses the portal's credentials",
        r"InvalidClientTokenId|UnrecognizedClientException|UnauthorizedOperation|AuthFailure"
        r"|ExpiredToken|invalid_grant|AccessDenied|Permission denied \((?:publickey|password)"
        r"|credentials? (?:are |is )?(?:invalid|expired|not found|not set)|403 Forbidden"
        r"|401 Unauthorized|PERMISSION_DENIED|CloudUserIdentityError",
        "An administrator of the portal renews them (`mportal admin cloud add`) and sees with "
        "`mportal admin cloud check` whether they work.",
        *_OF_PLACES,
    ),
    _failure(
        "no_capacity",
        "No location has capacity for this job now",
        r"ResourcesUnavailableError|InsufficientInstanceCapacity|ZONE_RESOURCE_POOL_EXHAUSTED"
        r"|does not have enough resources|Failed to (?:acquire|provision)(?: all)? resources"
        r"|No launchable resource|catalog does not contain any instances|stockout"
        r"|Insufficient nvidia\.com/gpu|ReqNodeNotAvail",
        "It is retried automatically. Name more locations in `resources.any_of`, other GPUs, or "
        "leave region and zone out.",
        *_OF_PLACES,
    ),
    _failure(
        "no_capacity",
        "No location has capacity for this job now",
        "",
        "It is retried automatically. Name more locations in `resources.any_of`, other GPUs, or "
        "leave region and zone out.",
        StopReason.NO_CAPACITY,
    ),
    _failure(
        "host_oom",
        "The node ran out of memory",
        r"because memory ran out|Out of memory: Killed process|oom-kill:|\boom_reaper:",
        "Request more in `resources.memory`, or use less: smaller batches, fewer procs on a host, "
        "fewer workers of the data loader.",
    ),
    _failure(
        "memory_refused",
        "The system refused a process more memory",
        r"\bMemoryError\b|Cannot allocate memory|std::bad_alloc"
        r"|DefaultCPUAllocator: (?:not enough|can't allocate)",
        "It has a limit (`ulimit -v`, `ulimit -d`), or wanted more at once than the node has: the "
        "job's tab Nodes shows how much was in use. Raise the limit, request more in "
        "`resources.memory`, or use less.",
    ),
    _failure(
        "pip_failed",
        "pip could not install what setup wants",
        r"ResolutionImpossible|Could not find a version that satisfies"
        r"|No matching distribution found|conflicting dependencies|Failed building wheel"
        r"|Failed to build installable wheels|subprocess-exited-with-error"
        r"|No solution found when resolving",
        "The line names the package. Loosen or pin its version, check that it exists for this "
        "Python and platform, and that the nodes reach the index.",
        StopReason.SETUP,
    ),
    _failure(
        "monarch_missing",
        "Monarch is not installed on the node",
        r"No module named '(?:torch)?monarch",
        "Install it in `setup`: `pip install torchmonarch`, into the Python that `run` uses.",
    ),
    _failure(
        "module_not_found",
        "A Python module is missing",
        r"ModuleNotFoundError: No module named|ImportError: (?:cannot import name|No module named)",
        "Install its package in `setup`, into the Python that `run` uses. If it is your own, "
        "check that it is in `workdir`, and that `.mportalignore` does not exclude it.",
    ),
    _failure(
        "name_resolution",
        "A host name is unknown",
        r"Name or service not known|Temporary failure in name resolution|getaddrinfo failed"
        r"|Could not resolve host|nodename nor servname|Failed to resolve '",
        "Check the name. Between nodes use addresses (SKYPILOT_NODE_IPS); for external hosts the "
        "nodes need a name server and internet access.",
    ),
    _failure(
        "no_route",
        "A host can't be reached",
        r"No route to host|Network is unreachable|Host is unreachable|\[Errno 11[13]\] (?:No route"
        r"|Host)|Connection timed out|ConnectTimeoutError",
        "Between nodes: they must be in one network, and a firewall must let the job's port "
        "through (`portal.port`, 22222). For external hosts: the nodes need internet access.",
    ),
    _failure(
        "peer_ended",
        "The connection to another rank broke",
        r"unhandled system error|remote process exited|ncclRemoteError|ncclSystemError"
        r"|gloo.{0,200}Connection (?:closed|reset) by peer|Connection closed by peer \[",
        "Most often another rank ended first: look for the earliest error in the logs of the other "
        "ranks. If there is none, check the network between nodes with NCCL_DEBUG=INFO, and "
        "NCCL_SOCKET_IFNAME.",
        is_effect=True,
    ),
    _failure(
        "nccl_timeout",
        "A collective operation of the GPUs hung",
        r"Watchdog caught collective operation timeout|ProcessGroupNCCL.{0,80}time(?:d )?out"
        r"|NCCL.{0,80}\b(?:timed out|timeout)\b|DistBackendError",
        "Some rank is late or dead: look at the ranks whose logs stop first. If all are well, "
        "check the network between nodes with NCCL_DEBUG=INFO, and NCCL_SOCKET_IFNAME.",
    ),
    _failure(
        "connection_refused",
        "A connection was refused",
        r"Connection refused|ConnectionRefusedError|\[Errno 111\]",
        "Nothing listens there: it has not started yet, has ended, or listens on another address. "
        "See the log of the rank that should.",
    ),
    _failure(
        "spawn_timeout",
        "Monarch timed out waiting for a host or a process",
        r"MESH_ATTACH_CONFIG_TIMEOUT|config push failed|HOST_SPAWN_READY_TIMEOUT"
        r"|PROC_SPAWN_MAX_IDLE|ACTOR_SPAWN_MAX_IDLE|never listened on port"
        r"|did not report to rank 0 within|timed? ?out.{0,40}(?:spawn|attach)|(?:spawn"
        r"|attach).{0,40}timed? ?out",
        "See the log of that rank: whether its worker started, and whether its port is open "
        "between the nodes. If it is only slow, set HYPERACTOR_HOST_SPAWN_READY_TIMEOUT in `envs`, "
        "such as "
        '"300s".',
    ),
    _failure(
        "proc_silent",
        "A process of the meshes no longer answered",
        r"was silent for \S+, so Monarch gave it up"
        r"|timeout waiting for message from proc mesh agent|no status received from process",
        "It was stopped, too busy, or cut off from the network: see its rank's log and the tab "
        "Nodes. If it only needs longer, raise the setting that the message names in `envs`.",
    ),
    _failure(
        KILLED,
        "A process was killed (SIGKILL)",
        r"ended by SIGKILL|as after SIGKILL|Signal 9 \(SIGKILL\)|Killed\(sig=9\)"
        r"|killed by signal 9\b|: line \d+: +\d+ Killed\b",
        "Mostly memory ran out: request more in `resources.memory`, or use less: smaller batches, "
        "fewer procs on a host, fewer workers of the data loader. On the node `dmesg` shows kills "
        "for memory.",
    ),
    _failure(
        "worker_crash",
        "A process crashed in native code",
        r"Segmentation fault|\bSIG(?:SEGV|ABRT|BUS|ILL|FPE)\b|core dumped|Fatal Python error"
        r"|Killed\(sig=(?!9\))\d+\)|exited with non-zero code \d+"
        r"|Cannot spawn new actors on mesh with supervision events|CUDA error: (?:an illegal memory"
        r"|device-side assert)|terminate called after throwing",
        "See the last lines of its rank. PYTHONFAULTHANDLER=1 in `envs` shows where it was, "
        "CUDA_LAUNCH_BLOCKING=1 which kernel.",
    ),
    _failure(
        "command_not_found",
        "A command was not found",
        r"returned exit code 127\b",
        "The log's last lines name it: install it in `setup`, or name its whole path. What `setup` "
        "exports or activates does not last until `run`.",
    ),
    _failure(
        "setup_failed",
        "setup failed",
        "",
        "See the setup stream of that rank: its last command says why.",
        StopReason.SETUP,
    ),
    _failure(
        "worker_lost",
        "A machine or its runner was lost",
        "",
        "Preemption, a restart, or a kill from outside; the job is retried automatically as long "
        "as `portal.retry.max_recoveries` lasts. Save checkpoints, so that little is lost.",
        StopReason.WORKER_LOST,
    ),
)
