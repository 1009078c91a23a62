"""Samples of hosts from real runners, and of GPUs through a stand-in for NVML."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import stand_in_nvml
from tests.runner_harness import RunnerRig


def test_every_node_reports_samples_while_the_job_runs(make_rig, tmp_path: Path) -> None:
    library = stand_in_nvml.build(tmp_path, use_percent=0)
    rig = make_rig(nodes=2, run="while [ ! -e done ]; do sleep 0.1; done", metrics_s=0.2)
    rig.environment["MPORTAL_NVML_LIBRARY"] = str(library)
    rig.start()
    rig.ingest.wait_for(lambda: {each["rank"] for each in rig.ingest.samples} == {0, 1}, 60)
    assert {gpu["utilization"] for each in rig.ingest.samples for gpu in each["gpus"][:2]} == {0}
    stand_in_nvml.set_use(library, 88)
    rig.ingest.wait_for(
        lambda: any(gpu["utilization"] == 88 for gpu in rig.ingest.samples[-1]["gpus"]), 60
    )
    reported = rig.ingest.samples[-1]
    assert 0 < reported["memory_used"] < reported["memory_total"]
    assert reported["cpu"] is None or 0 <= reported["cpu"] <= 100
    rig.write("done", "")
    assert rig.ingest.end["reason"] == "COMPLETED"
    # They are no frames of the log: its numbers have no holes.
    assert rig.ingest.holes == []
    rig.wait()


@pytest.mark.parametrize("settings", [{"metrics_s": 0}, {}])
def test_a_runner_that_is_not_to_report_or_has_no_library_runs_as_well(
    make_rig, settings: dict[str, float]
) -> None:
    rig: RunnerRig = make_rig(run="sleep 1.5", **settings)
    rig.environment["MPORTAL_NVML_LIBRARY"] = "/nothing/here.so"
    assert rig.run()["reason"] == "COMPLETED"
    assert all(each["gpus"] == [] for each in rig.ingest.samples)
    if "metrics_s" in settings:
        assert rig.ingest.samples == []
    assert rig.log() == ""
