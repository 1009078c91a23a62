"""Launch plans of tasks, by SkyPilot's own optimizer on the catalogs of this test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CATALOGUES = {
    "lambda/vms.csv": """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
gpu_1x_h100,H100,1.0,26.0,200.0,2.49,us-east-1,,
gpu_1x_h100,H100,1.0,26.0,200.0,2.89,us-west-1,,
cpu_4x,,,4.0,16.0,0.2,us-east-1,,
""",
    "aws/vms.csv": """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice,AvailabilityZone,Arch
m6i.large,,,2.0,8.0,0.096,us-east-1,,0.03,us-east-1a,x86_64
m6i.large,,,2.0,8.0,0.096,us-east-1,,0.02,us-east-1b,x86_64
m6i.large,,,2.0,8.0,0.123,us-west-1,,0.05,us-west-1a,x86_64
p5.48xlarge,H100,8,192.0,2048.0,98.32,us-east-1,,40.0,us-east-1a,x86_64
""",
    "common/accelerators.csv": "AcceleratorName,Clouds\nH100,Lambda\n",
}
TASKS: dict[str, dict[str, Any]] = {
    "cpus": {"resources": {"cpus": "2+"}, "num_nodes": 2},
    "gpu": {"resources": {"accelerators": "H100:1"}, "num_nodes": 3},
    "spot": {"resources": {"infra": "aws", "cpus": "2+", "use_spot": True}},
    "either": {"resources": {"any_of": [{"accelerators": "H100:1"}, {"accelerators": "A100:1"}]}},
    "misspelt": {"resources": {"accelerators": "H1000:1"}},
    "impossible": {"resources": {"infra": "lambda", "accelerators": "H100:1", "use_spot": True}},
    "disabled": {"resources": {"infra": "gcp"}},
    "nonsense": {"resources": {"cpus": "2+"}, "nonsense": 1},
    "not a number": {"num_nodes": 0},
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Compute all plans in one program: importing SkyPilot takes seconds."""
    home = tmp_path_factory.mktemp("home")
    for name, text in CATALOGUES.items():
        file = home / ".sky" / "catalogs" / "v8" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.skypilot.planning"],
        input=json.dumps(list(TASKS.values())),
        env={
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        },
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    answers = [json.loads(line.removeprefix("answer ")) for line in lines]
    return dict(zip(TASKS, answers, strict=True))


def prices(plan: dict[str, Any]) -> list[tuple[str, float]]:
    return [(row["infra"], row["usd_per_hour"]) for row in plan["candidates"]]


def test_every_place_is_listed_with_its_price_for_all_nodes(plans: dict[str, Any]) -> None:
    assert prices(plans["cpus"]) == [
        ("aws/us-east-1", 0.192),
        ("aws/us-west-1", 0.246),
        ("lambda/us-east-1", 0.4),
    ]
    assert plans["cpus"]["reasons"] == []


def test_exactly_the_one_that_skypilot_would_take_is_chosen(plans: dict[str, Any]) -> None:
    assert [row["chosen"] for row in plans["gpu"]["candidates"]] == [True, False]
    assert plans["gpu"]["candidates"][0] == {
        "infra": "lambda/us-east-1",
        "instance_type": "gpu_1x_h100",
        "cpus": 26.0,
        "memory": 200.0,
        "accelerators": {"H100": 1},
        "use_spot": False,
        "usd_per_hour": 7.47,
        "chosen": True,
    }


def test_spot_prices_are_distinguished_by_zone(plans: dict[str, Any]) -> None:
    assert prices(plans["spot"]) == [
        ("aws/us-east-1/us-east-1b", 0.02),
        ("aws/us-east-1/us-east-1a", 0.03),
        ("aws/us-west-1/us-west-1a", 0.05),
    ]
    assert all(row["use_spot"] for row in plans["spot"]["candidates"])


def test_of_several_requests_those_that_nothing_fits_are_named(plans: dict[str, Any]) -> None:
    assert prices(plans["either"])[0] == ("lambda/us-east-1", 2.49)
    assert len(plans["either"]["reasons"]) == 1
    assert "A100" in plans["either"]["reasons"][0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("misspelt", "H1000"),
        ("impossible", "Spot instances are not supported in Lambda"),
        ("disabled", "gcp which is not enabled"),
    ],
)
def test_what_cannot_be_says_why_and_advises_no_commands(
    plans: dict[str, Any], name: str, words: str
) -> None:
    assert plans[name]["candidates"] == []
    reasons = "\n".join(plans[name]["reasons"])
    assert words in reasons
    assert "sky check" not in reasons
    assert "\x1b" not in reasons


@pytest.mark.parametrize("name", ["nonsense", "not a number"])
def test_what_is_no_task_is_refused_with_the_reason(plans: dict[str, Any], name: str) -> None:
    assert plans[name]["status"] == 400
    assert plans[name]["detail"]["message"]
