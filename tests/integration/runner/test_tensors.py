"""Tensors of PyTorch in a Monarch job on two hosts: an all-reduce over gloo, and RDMA over TCP."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_ca import make_authority
from tests.integration.runner.test_monarch_job import assert_clean
from tests.runner_harness import RunnerRig

# `make tensors` installs it.
TORCH = Path(os.environ.get("MPORTAL_TEST_TORCH", "/nowhere"))
DRIVER = """
import os, socket
import torch
import torch.distributed as dist
from monarch.actor import Actor, current_rank, endpoint
from monarch.rdma import RDMABuffer
from mportal_runtime import meshes
class Trainer(Actor):
    def __init__(self):
        self.rank = current_rank().rank
    @endpoint
    def free_address(self):
        host = os.environ["SKYPILOT_NODE_IPS"].split()[0]
        with socket.create_server((host, 0)) as server:
            return f"tcp://{host}:{server.getsockname()[1]}"
    @endpoint
    def join(self, address):
        dist.init_process_group("gloo", init_method=address, rank=self.rank, world_size=4)
    @endpoint
    def sum_over_all(self):
        numbers = torch.arange(1000, dtype=torch.float64) * (self.rank + 1)
        dist.all_reduce(numbers)
        return numbers.sum().item()
    @endpoint
    def offer(self):
        self.weights = torch.arange(65536, dtype=torch.float32)
        self.buffer = RDMABuffer(self.weights.view(torch.uint8))
        return self.buffer
    @endpoint
    def last_weight(self):
        return self.weights[-1].item()
class Reader(Actor):
    @endpoint
    async def double(self, buffer):
        mine = torch.zeros(65536, dtype=torch.float32)
        await buffer.read_into(mine.view(torch.uint8))
        mine *= 2
        await buffer.write_from(mine.view(torch.uint8))
        return int(os.environ["SKYPILOT_NODE_RANK"])
procs = meshes.trainers.spawn_procs(per_host={"procs": 2})
trainers = procs.spawn("trainers", Trainer)
reader = procs.slice(hosts=1, procs=1).spawn("reader", Reader)
first = trainers.slice(hosts=0, procs=0)
address = first.free_address.call_one().get(timeout=120)
trainers.join.call(address).get(timeout=120)
print("sums", sorted(trainers.sum_over_all.call().get(timeout=120).values()))
buffer = first.offer.call_one().get(timeout=120)
node = reader.double.call_one(buffer).get(timeout=120)
print("weight", first.last_weight.call_one().get(timeout=120), "doubled by node", node)
"""


@pytest.mark.tensors
@pytest.mark.feature("S0.3")
@pytest.mark.timeout(400)
def test_tensors_are_reduced_and_read_between_two_hosts(make_rig: Callable[..., RunnerRig]) -> None:
    assert (TORCH / "torch").is_dir(), "There is no torch to test with: run `make tensors`."
    envs = {"PYTHONPATH": str(TORCH), "GLOO_SOCKET_IFNAME": "lo"}
    settings = {"run": "python train.py", "meshes": {"trainers": 2}, "envs": envs}
    rig = make_rig(nodes=2, tls=make_authority(), **settings)
    rig.config["timeouts"].update(workers_s=120)
    rig.write("train.py", DRIVER)
    end = rig.run(300)
    assert end["reason"] == "COMPLETED", end["evidence"]
    said = [text for text in rig.ingest.texts("stdout", 0) if text.startswith(("sums", "weight"))]
    total = 1 + 2 + 3 + 4
    assert said == [f"sums {[total * 499_500.0] * 4}", "weight 131070.0 doubled by node 1"]
    assert_clean(rig)
