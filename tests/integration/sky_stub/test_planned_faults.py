"""Faults that a plan causes, as SkyPilot's real client and a portal's caller see them."""

from __future__ import annotations

import httpx
import pytest

from monarch_client.skypilot.errors import SkyPilotError
from tests.integration.sky_stub.conftest import Sky, refusal, task
from tests.sky_stub import processes
from tests.sky_stub.process import StubProcess
from tests.waiting import eventually


def test_a_launch_that_was_taken_but_answered_too_late_is_found(
    sky: Sky, stub: StubProcess
) -> None:
    stub.strike("late", "launch")
    assert sky.launch("one", "true") == 1
    assert len(stub.witness.events("launch_begun")) == 1


def test_a_launch_whose_answer_was_dropped_is_found(sky: Sky, stub: StubProcess) -> None:
    stub.strike("drop", "launch")
    assert sky.launch("one", "true") == 1
    assert len(stub.witness.events("launch_begun")) == 1


def test_an_answer_of_503_is_retried(sky: Sky, stub: StubProcess) -> None:
    stub.strike("unavailable", "status")
    assert sky.ask("status") == []
    assert len(stub.witness.events("fault")) == 1


def test_a_request_that_the_server_lost_is_not_found(sky: Sky, stub: StubProcess) -> None:
    stub.strike("lose", "launch")
    assert refusal(sky.do, "launch", cluster_name="one", task=task("true")).kind == "not_found"
    assert sky.ask("status") == []


@pytest.mark.parametrize(
    ("type_name", "more", "kind"),
    [
        ("ResourcesUnavailableError", {"history": ["full"]}, "no_capacity"),
        ("NotSupportedError", {}, "not_supported"),
        ("ClusterSetUpError", {}, "command"),
        ("InvalidCloudCredentials", {}, "credentials"),
    ],
)
def test_a_planned_error_arrives_as_what_it_is(
    sky: Sky, stub: StubProcess, type_name: str, more: dict[str, object], kind: str
) -> None:
    stub.strike("error", "launch", type=type_name, message="\x1b[31mno luck\x1b[0m", **more)
    error = refusal(sky.do, "launch", cluster_name="one", task=task("true"))
    assert (error.kind, error.message) == (kind, "no luck")


def test_a_place_that_refuses_today_is_passed_over(sky: Sky, stub: StubProcess) -> None:
    stub.plan(places=[{"infra": "slurm/stub/a"}, {"infra": "slurm/stub/b"}])
    stub.strike("error", "provision", infra="*/a", times=None)
    sky.launch("one", "true", resources={"infra": "slurm/stub"})
    assert sky.ask("status")[0]["infra"] == "slurm/stub/b"


def test_jobs_go_on_without_the_server_and_requests_are_forgotten(
    sky: Sky, stub: StubProcess
) -> None:
    go = stub.state / "go"
    waiting = task(f"until [ -e {go} ]; do sleep 0.05; done; echo on")
    launch = sky.ask("launch", cluster_name="one", task=waiting)
    job = sky.ask("result", request_id=launch)["job_id"]
    stub.kill()
    go.touch()
    assert eventually(lambda: stub.witness.events("job_ended"))
    stub.start()
    assert refusal(sky.ask, "result", request_id=launch).kind == "not_found"
    assert sky.ask("requests_of", cluster_name="one") == []
    assert sky.job_status("one", job) == "SUCCEEDED"
    assert "on" in sky.log("one", job)


@pytest.mark.parametrize("looks", ["INIT", "UP"])
def test_a_launch_cut_off_by_the_servers_death_keeps_its_nodes_until_it_is_repeated(
    sky: Sky, stub: StubProcess, looks: str
) -> None:
    stub.plan(provision_s=600, interrupted_looks=looks)
    sky.ask("launch", cluster_name="one", task=task("true"))
    assert eventually(lambda: stub.witness.events("launch_begun"))
    stub.restart()
    assert sky.status_of("one") == looks
    assert refusal(sky.ask, "jobs", cluster_name="one").kind == "not_up"
    assert stub.witness.problems()
    stub.plan(provision_s=0)
    sky.launch("one", "true")
    assert sky.status_of("one") == "UP"
    sky.do("down", cluster_name="one")
    assert stub.witness.problems() == []


def test_a_cancelled_launch_leaves_its_nodes_behind(sky: Sky, stub: StubProcess) -> None:
    stub.plan(provision_s=600)
    launch = sky.ask("launch", cluster_name="one", task=task("true"))
    assert eventually(lambda: stub.witness.events("launch_begun"))
    sky.do("cancel_request", request_id=launch)
    assert refusal(sky.ask, "result", request_id=launch).kind == "cancelled"
    assert sky.status_of("one") == "INIT"
    assert sky.bill("one")["status"] == "INIT"


@pytest.mark.parametrize(("point", "jobs"), [("launch.up", 0), ("launch.submitted", 1)])
def test_a_launch_can_break_off_at_each_of_its_points(
    sky: Sky, stub: StubProcess, point: str, jobs: int
) -> None:
    stub.strike("halt", point)
    launch = sky.ask("launch", cluster_name="one", task=task("true"))
    assert eventually(lambda: stub.witness.events("fault"))
    assert eventually(lambda: not sky.ask("requests_of", cluster_name="one"))
    assert refusal(sky.ask, "result", request_id=launch).kind == "not_found"
    assert len(stub.witness.events("job_submitted")) == jobs


def test_a_node_without_power_loses_its_processes_and_the_job_fails(
    sky: Sky, stub: StubProcess
) -> None:
    sky.launch("one", "exec sleep 600", 2)
    stub.cloud.kill_node("one", 1)
    assert sky.status_of("one") == "INIT"
    assert refusal(sky.ask, "jobs", cluster_name="one").kind == "not_up"
    assert eventually(lambda: stub.witness.events("job_ended", status="FAILED"))
    assert processes.marked(processes.NODE_MARK, stub.cloud.node("one", 1)) == set()


@pytest.mark.parametrize(("looks", "status"), [("gone", None), ("INIT", "INIT")])
def test_a_preempted_cluster_has_no_processes_left(
    sky: Sky, stub: StubProcess, looks: str, status: str | None
) -> None:
    stub.plan(preempted_looks=looks)
    sky.launch("one", "exec sleep 600", 2)
    stub.cloud.preempt("one")
    assert processes.marked(processes.NODE_MARK, stub.state) == set()
    assert sky.status_of("one") == status


def test_a_log_can_break_off(sky: Sky, stub: StubProcess) -> None:
    job = sky.launch("one", "seq 1000")
    assert eventually(lambda: sky.job_status("one", job) == "SUCCEEDED")
    stub.strike("cut", "logs", bytes=300)
    with pytest.raises(SkyPilotError) as caught:
        sky.log("one", job)
    assert caught.value.kind == "server_away"


def test_a_request_that_hangs_ends_when_it_is_cancelled(sky: Sky, stub: StubProcess) -> None:
    sky.launch("one", "true")
    stub.strike("hang", "down.begun")
    down = sky.ask("down", cluster_name="one")
    assert eventually(lambda: stub.witness.events("fault"))
    sky.do("cancel_request", request_id=down)
    assert sky.status_of("one") == "UP"


def test_no_user_gets_in_without_the_token(stub: StubProcess) -> None:
    assert httpx.post(f"{stub.url}/status", json={}).status_code == 401
    assert httpx.get(f"{stub.url}/api/health").status_code == 200
