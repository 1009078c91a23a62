"""Tensors of PyTorch in the object store: no copy, and writes that stay private."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# `make tensors` installs it.
TORCH = Path(os.environ.get("MPORTAL_TEST_TORCH", "/nowhere"))
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import torch
from monarch_client.context import JobContext
from monarch_client.context.objects import deserialize_object, serialize

def copy(value):
    return deserialize_object(memoryview(serialize([value]).to_bytes()))[0]

kinds = [
    torch.arange(10), torch.randn(3, 4).T, torch.zeros(0), torch.tensor(5.0),
    torch.ones(5, dtype=torch.bfloat16), torch.ones(3, dtype=torch.bool),
    torch.nn.Parameter(torch.ones(3)), torch.ones(2, requires_grad=True),
    torch.view_as_complex(torch.ones(3, 2)).conj(),
]
for tensor in kinds:
    found = copy(tensor)
    assert type(found) is type(tensor) and found.dtype == tensor.dtype, tensor
    assert torch.equal(found, tensor) and found.requires_grad == tensor.requires_grad, tensor

def triple(value):
    return value["t"].mul_(3)

with JobContext(resources={"CPU": 2}) as context:
    ref = context.put({"t": torch.ones(1_000_000)})
    mine, other = context.get(ref)["t"], context.get(ref)["t"]
    mine[0] = 7
    tripled = context.get(context.create_task(triple, (ref,)))
    print(mine[:2].tolist(), other[:2].tolist(), tripled[:2].tolist())
"""


@pytest.mark.tensors
@pytest.mark.feature("S4.6")
def test_tensors_are_equal_and_a_write_is_seen_by_its_process_alone() -> None:
    assert (TORCH / "torch").is_dir(), "There is no torch to test with: run `make tensors`."
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{TORCH}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout == "[7.0, 1.0] [1.0, 1.0] [3.0, 3.0]\n", done.stderr
