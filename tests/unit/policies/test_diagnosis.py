"""Known failures are named with the line that shows them; nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.policies.diagnosis import diagnose
from jobs.policies.known_failures import FAILURES
from jobs.statuses import StopReason

ROOT = Path(__file__).resolve().parents[3]
NOISE = ["epoch 3 step 120 loss 0.431", "saving checkpoint", "Traceback (most recent call last):"]
FAILED = "The program on rank 0 (10.0.0.1) returned exit code 1."

# Lines as the real programs print them.
REAL = [
    ("gpu_hardware", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("gpu_hardware", "NVRM: Xid (PCI:0000:3b:00): 79, pid=912, GPU has fallen off the bus."),
    ("cuda_oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0"),
    ("cuda_oom", "RuntimeError: CUDA error: out of memory"),
    ("torch_without_cuda", "AssertionError: Torch not compiled with CUDA enabled"),
    (
        "gpu_driver_missing",
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
    ),
    (
        "gpu_driver_missing",
        (
            "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an "
            "NVIDIA GPU and installed a driver"
        ),
    ),
    (
        "gpu_driver_missing",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    ),
    (
        "shared_memory",
        (
            "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is "
            "possible that dataloader's workers are out of shared memory."
        ),
    ),
    ("disk_full", "OSError: [Errno 28] No space left on device: '/root/ckpt/step-100.pt'"),
    ("disk_full", "cp: error writing 'data.bin': Disk quota exceeded"),
    ("too_many_files", "OSError: [Errno 24] Too many open files: '/data/shard-0017.tar'"),
    ("python_mismatch", "TypeError: code() argument 13 must be str, not int"),
    ("python_mismatch", "The driver runs Python 3.11, but the workers run 3.10."),
    (
        "image_pull",
        "Failed to pull image: manifest for pytorch/pytorch:9.9 not found: manifest unknown",
    ),
    ("image_pull", "Pod mp-1-head: ImagePullBackOff"),
    ("image_pull", "toomanyrequests: You have reached your unauthenticated pull rate limit."),
    ("module_not_found", "ModuleNotFoundError: No module named 'transformers'"),
    ("module_not_found", "ImportError: cannot import name 'foo' from 'bar' (/w/bar.py)"),
    ("monarch_missing", "ModuleNotFoundError: No module named 'monarch'"),
    ("name_resolution", "socket.gaierror: [Errno -2] Name or service not known"),
    ("name_resolution", "curl: (6) Could not resolve host: huggingface.co"),
    ("no_route", "OSError: [Errno 113] No route to host"),
    ("no_route", "connect to 10.0.0.7:22222: Network is unreachable (os error 101)"),
    (
        "nccl_timeout",
        (
            "[rank3]:[E1121] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL("
            "SeqNum=7, OpType=ALLREDUCE) ran for 600029 milliseconds before timing out."
        ),
    ),
    ("nccl_timeout", "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77"),
    ("connection_refused", "ConnectionRefusedError: [Errno 111] Connection refused"),
    (
        "spawn_timeout",
        "config push failed: HYPERACTOR_MESH_ATTACH_CONFIG_TIMEOUT of 60s elapsed for host 1",
    ),
    ("memory_refused", "OSError: [Errno 12] Cannot allocate memory"),
    # What torch 2.13, older ones, and an empty number print.
    (
        "no_processes_per_node",
        'File "/v/torch/distributed/elastic/agent/server/api.py", line 109, in __post_init__',
    ),
    ("no_processes_per_node", "assert self.local_world_size > 0"),
    ("no_processes_per_node", "ValueError: Unsupported nproc_per_node value:"),
    (
        "nccl_missing",
        "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory",
    ),
    ("nccl_missing", "RuntimeError: Distributed package doesn't have NCCL built in"),
    (
        "nccl_missing",
        "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
    ),
    (
        "proc_silent",
        'timeout waiting for message from proc mesh agent while querying for "probe-1". The',
    ),
    ("worker_crash", "Segmentation fault (core dumped)"),
    ("worker_crash", "SupervisionError: actor stopped: proc exited with non-zero code 3"),
    ("worker_crash", "SupervisionError: Killed(sig=6)"),
    ("killed", "SupervisionError: Killed(sig=9)"),
    ("killed", "bash: line 3:  4711 Killed                  python train.py"),
    ("killed", "traceback : Signal 9 (SIGKILL) received by PID 4711"),
    (
        "worker_crash",
        "RuntimeError: Cannot spawn new actors on mesh with supervision events",
    ),
    ("worker_crash", "Fatal Python error: Aborted"),
    ("memory_refused", "MemoryError"),
    (
        "memory_refused",
        "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: 8 GB",
    ),
]


@pytest.mark.parametrize(("code", "line"), REAL)
def test_a_known_failure_is_named_with_the_line_that_shows_it(code, line):
    found = diagnose(StopReason.USER_CODE, FAILED, [*NOISE, f"\x1b[31m{line}\x1b[0m", "bye"])
    assert found is not None
    assert (found.code, found.evidence) == (code, line)
    assert found.title and found.fix


def test_evidence_has_the_text_of_a_link_alone():
    line = "\x1b]8;;https://docs.example/oom\x1b\\MemoryError\x1b]8;;\x1b\\: no room"
    found = diagnose(StopReason.USER_CODE, FAILED, [line])
    assert found is not None
    assert found.evidence == "MemoryError: no room"


# Of the portal's own words and those of places where jobs run: reason, message, evidence.
TOLD = [
    (
        "no_capacity",
        StopReason.NO_CAPACITY,
        (
            "ResourcesUnavailableError: Failed to acquire resources in all zones in us-east-1 for "
            "{AWS(p5.48xlarge, {'H100': 8})}."
        ),
        "",
    ),
    ("no_capacity", StopReason.NO_CAPACITY, "All 16 nodes of the local backend are in use.", ""),
    (
        "quota_exceeded",
        StopReason.NO_CAPACITY,
        "Quota 'NVIDIA_H100_GPUS' exceeded. Limit: 0.0 in region us-central1.",
        "",
    ),
    (
        "quota_exceeded",
        StopReason.NO_CAPACITY,
        "VcpuLimitExceeded: You have requested more vCPU capacity than your current limit of 32",
        "",
    ),
    (
        "cloud_credentials",
        StopReason.BACKEND,
        "ClientError: An error occurred (UnauthorizedOperation) when calling RunInstances",
        "",
    ),
    (
        "cloud_credentials",
        StopReason.BACKEND,
        "alice@login.example.org: Permission denied (publickey).",
        "",
    ),
    (
        "spawn_timeout",
        StopReason.WORKER_NEVER_READY,
        "The worker of rank 1 (10.0.0.2) never listened on port 22222: nothing listens.",
        "",
    ),
    (
        "spawn_timeout",
        StopReason.WORKER_NEVER_READY,
        "The runner of rank 2 (10.0.0.3) did not report to rank 0 within 60 s.",
        "",
    ),
    (
        "no_route",
        StopReason.WORKER_NEVER_READY,
        "The runner of rank 2 (10.0.0.3) did not report to rank 0 within 60 s.",
        "OSError: [Errno 113] No route to host",
    ),
    (
        "host_oom",
        StopReason.OOM,
        "The program of rank 0 (10.0.0.1) was killed because memory ran out.",
        "",
    ),
    (
        "worker_crash",
        StopReason.WORKER_LOST,
        "The worker of rank 1 (10.0.0.2) was lost: its process was ended by SIGSEGV.",
        "",
    ),
    (
        "worker_lost",
        StopReason.WORKER_LOST,
        "Lost rank 0 in attempt 1: it stopped reporting.",
        "",
    ),
    (
        "pip_failed",
        StopReason.SETUP,
        "setup failed on rank 0 (10.0.0.1): it returned exit code 1.",
        (
            "ERROR: Cannot install a and b because these package versions have conflicting "
            "dependencies.\nERROR: ResolutionImpossible: for help visit https://pip.pypa.io/"
        ),
    ),
    (
        "pip_failed",
        StopReason.SETUP,
        "setup failed on rank 0 (10.0.0.1): it returned exit code 1.",
        "ERROR: No matching distribution found for torch==99.0",
    ),
    (
        "setup_failed",
        StopReason.SETUP,
        "setup failed on rank 0 (10.0.0.1): it returned exit code 2.",
        "make: *** No targets specified and no makefile found.  Stop.",
    ),
    (
        "killed",
        StopReason.USER_CODE,
        "The program on rank 0 (10.0.0.1) was ended by SIGKILL.",
        "",
    ),
    (
        "killed",
        StopReason.USER_CODE,
        "The program on rank 0 (10.0.0.1) returned exit code 137, as after SIGKILL.",
        "",
    ),
    (
        "command_not_found",
        StopReason.USER_CODE,
        "The program on rank 0 (10.0.0.1) returned exit code 127.",
        "bash: line 1: trian: command not found",
    ),
    (
        "command_not_found",
        StopReason.SETUP,
        "setup failed on rank 0 (10.0.0.1): it returned exit code 127.",
        "",
    ),
    (
        "proc_silent",
        StopReason.WORKER_LOST,
        "A process of the meshes of rank 1 was silent for 30s, so Monarch gave it up (X).",
        "",
    ),
    (
        "peer_ended",
        StopReason.USER_CODE,
        "The program on rank 2 (10.0.0.3) raised RuntimeError: NCCL error: unhandled system error.",
        "",
    ),
    (
        "peer_ended",
        StopReason.USER_CODE,
        FAILED,
        (
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process "
            "exited or there was a network error, NCCL version 2.27.5"
        ),
    ),
    (
        "peer_ended",
        StopReason.USER_CODE,
        FAILED,
        (
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed "
            "by peer [10.0.0.3]:40122"
        ),
    ),
    (
        "python_mismatch",
        StopReason.PYTHON_MISMATCH,
        "The workers run different versions of Python (rank 0: 3.10, rank 1: 3.11).",
        "",
    ),
]


@pytest.mark.parametrize(("code", "reason", "message", "evidence"), TOLD)
def test_what_a_runner_or_a_backend_reports_is_recognized(code, reason, message, evidence):
    found = diagnose(reason, message, NOISE, evidence)
    assert found is not None
    assert found.code == code
    assert found.evidence in f"{message}\n{evidence}"


# Lines of jobs that succeeded, by the entry that they resemble.
HARMLESS = [
    ("gpu_hardware", "NVRM: Xid (PCI:0000:3b:00): 43, pid=912, Ch 00000008"),
    ("cuda_oom", "num_ooms: 0, CUDA memory reserved 61.2 GiB of 79.1 GiB"),
    ("torch_without_cuda", "torch 2.9.0+cpu, CUDA available: False"),
    (
        "no_processes_per_node",
        "I torch/distributed/elastic/agent/server/api.py:925] local_world_size=1, starting workers",
    ),
    ("nccl_missing", "node1:71:71 [0] NCCL INFO NCCL version 2.27.5+cuda12.9"),
    (
        "gpu_driver_missing",
        (
            "[RdmaXcel] Can't open libcuda.so.1: libcuda.so.1: cannot open shared object file: No "
            "such file or directory"
        ),
    ),
    ("shared_memory", "shm 64M 12M 52M 19% /dev/shm"),
    ("disk_full", "12G of 98G free on device /dev/sda1"),
    ("too_many_files", "open files (-n) 1024"),
    ("python_mismatch", "The driver runs Python 3.11, and so do the workers."),
    ("image_pull", 'Successfully pulled image "pytorch/pytorch:2.9.0" in 4.1s'),
    ("quota_exceeded", "429: You exceeded your quota of requests (quota exceeded), waiting 2 s"),
    ("cloud_credentials", "HTTP 403 Forbidden for a private shard, left out"),
    ("no_capacity", "shard 7: No launchable resource found in cache, built it"),
    ("host_oom", "oom_reaper is on, oom-killer is set to 0"),
    ("memory_refused", "MemoryErrors: 0"),
    ("pip_failed", "Could not find a version that satisfies the hint, using the latest"),
    ("monarch_missing", "monarch 0.7.0 is there"),
    ("module_not_found", "module flash_attn is not there, using torch's attention"),
    ("name_resolution", "resolved node2 to 10.0.0.2"),
    ("no_route", "route to host node2: 0.3 ms"),
    ("peer_ended", "wget: Connection closed by peer, retrying"),
    ("nccl_timeout", "NCCL INFO comm 0x55 rank 0 nranks 8 Init COMPLETE"),
    ("connection_refused", "connections refused by the filter: 0"),
    ("spawn_timeout", "spawned 8 procs in 1.2 s"),
    ("proc_silent", "the microphone was silent for 30 s"),
    ("killed", "Unable to shut down process 71 via SIGTERM, forcefully exiting via SIGKILL"),
    ("worker_crash", "SIGTERM handler installed, dumps go to /tmp"),
    ("command_not_found", "which: numactl: command not found"),
    ("setup_failed", "setup failed once, second mirror works"),
    ("worker_lost", "worker 3 has left, 4 take over"),
]


@pytest.mark.parametrize(("code", "line"), HARMLESS)
def test_what_jobs_print_that_succeed_is_no_cause(code, line):
    found = diagnose(StopReason.USER_CODE, FAILED, [*NOISE, line])
    assert found is None or found.code != code


def test_every_entry_of_the_table_has_a_harmless_line_that_resembles_it():
    assert {failure.code for failure in FAILURES} == {code for code, _ in HARMLESS}


def test_every_entry_of_the_table_is_shown_by_an_example():
    shown = {code for code, *_ in [*REAL, *TOLD]}
    assert {failure.code for failure in FAILURES} == shown


def test_every_entry_of_the_table_is_documented():
    page = (ROOT / "docs/reference/diagnoses.md").read_text()
    assert [f.code for f in FAILURES if f"| `{f.code}` | {f.title}. | {f.fix} |" not in page] == []


@pytest.mark.parametrize(
    "line",
    ["ValueError: bad learning rate", "loss is nan", "KeyError: 'weights'", "assert x == y", ""],
)
def test_an_error_of_the_program_alone_is_left_to_its_traceback(line):
    assert diagnose(StopReason.USER_CODE, FAILED, [*NOISE, line]) is None


@pytest.mark.parametrize(
    "line",
    [
        "The process that connects laptops is started again: it was ended by SIGKILL",
        "The meshes are not watched: the process of the mesh admin fails, it was ended by SIGABRT",
    ],
)
def test_the_end_of_a_helper_of_the_runner_explains_nothing(line):
    assert diagnose(StopReason.USER_CODE, FAILED, [line]) is None
