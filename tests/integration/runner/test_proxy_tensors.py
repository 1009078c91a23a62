"""Tensors of PyTorch in the codec of mesh proxies, in an interpreter that has torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.runner.test_tensors import TORCH

CHECKOUT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
import numpy as np
import torch
from monarch_client.runner.scripts.mportal_proxies.arrays import _TORCH_DTYPES
from monarch_client.runner.scripts.mportal_proxies.codec import Codec, CodecError

codec = Codec(lambda _name: None)
for name in sorted(_TORCH_DTYPES):
    dtype = getattr(torch, name)
    tensor = torch.arange(24).reshape(2, 3, 4).to(dtype)[:, 1:, ::2]
    decoded = codec.decode(bytearray(codec.encode([tensor])))[0]
    assert (decoded.dtype, decoded.shape) == (dtype, tensor.shape), name
    assert decoded.contiguous().view(torch.uint8).equal(tensor.contiguous().view(torch.uint8)), name
for tensor in (torch.tensor(1.5), torch.empty(0, 3), torch.ones(2, requires_grad=True)):
    decoded = codec.decode(bytearray(codec.encode(tensor)))
    assert decoded.shape == tensor.shape and decoded.equal(tensor.detach())
decoded += 1
try:
    codec.encode({"x": torch.eye(3).to_sparse()})
except CodecError as error:
    assert str(error).startswith("x is a torch.Tensor")
message = codec.encode(torch.arange(3, dtype=torch.float32))
del sys.modules["torch"]
assert type(codec.decode(message)) is np.ndarray
print("all tensors came back")
"""


@pytest.mark.tensors
def test_each_kind_of_tensor_comes_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(TORCH)])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.stdout.endswith("all tensors came back\n"), done.stdout
