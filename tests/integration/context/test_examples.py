"""The programs of `examples/tasks`, each as a process on this machine, and their results."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.programs import CHECKOUT

pytestmark = [pytest.mark.slow, pytest.mark.feature("S4.1")]
EXAMPLES = CHECKOUT / "examples" / "tasks"


def output_of(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / program, *arguments],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_sweep_finds_the_degree_of_the_polynomial() -> None:
    assert "best of 40 settings: degree 3, penalty 0.001" in output_of("sweep.py")


def test_a_parameter_server_learns_from_all_workers() -> None:
    output = output_of("parameter_server.py")
    (steps,) = re.findall(r"gradients of each worker: \[(.*)\]", output)
    assert all(int(each) > 0 for each in steps.split(", ")), output
    (error,) = re.findall(r"after 300 gradients the greatest error of a weight is (.*)", output)
    assert float(error) < 0.05


def test_a_map_reduce_sorts_numbers_that_the_driver_never_has() -> None:
    output = output_of("map_reduce.py", "--megabytes", "20")
    assert "sorted 20 MB in 16 ranges" in output
    assert "in order: True, complete: True" in output
