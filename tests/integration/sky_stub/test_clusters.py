"""Clusters behind the stub: locations, prices, sharing, idleness, termination."""

from __future__ import annotations

import pytest

from tests.integration.sky_stub.conftest import Sky, refusal, task
from tests.sky_stub import processes
from tests.sky_stub.process import StubProcess
from tests.waiting import eventually

TWO_PLACES = [
    {"infra": "slurm/stub/dear", "capacity": 4, "usd_per_hour": 3600.0},
    {"infra": "slurm/stub/cheap", "capacity": 1, "usd_per_hour": 360.0, "spot_usd_per_hour": 36.0},
]
ANYWHERE = {"infra": "slurm/stub"}


def test_nothing_remains_of_a_cluster_that_is_taken_down(sky: Sky, stub: StubProcess) -> None:
    sky.launch("one", "sleep 600 & setsid sleep 600", 2)
    sky.do("down", cluster_name="one")
    assert sky.ask("status") == []
    assert processes.marked(processes.NODE_MARK, stub.state) == set()
    assert list((stub.state / "clusters").iterdir()) == []
    assert stub.witness.problems() == []


@pytest.mark.parametrize("verb", ["down", "stop", "start"])
def test_what_does_not_exist_is_said_not_to(sky: Sky, verb: str) -> None:
    assert refusal(sky.do, verb, cluster_name="nobody").kind == "not_found"


def test_taking_down_in_the_middle_of_a_launch_ends_the_launch(sky: Sky, stub: StubProcess) -> None:
    stub.plan(provision_s=600)
    launch = sky.ask("launch", cluster_name="one", task=task("echo never"))
    assert eventually(lambda: sky.status_of("one") == "INIT")
    sky.do("down", cluster_name="one")
    assert {one["name"]: one["status"] for one in sky.ask("requests_of", cluster_name="one")} == {
        "down": "SUCCEEDED",
        "launch": "CANCELLED",
    }
    assert stub.witness.events("job_submitted") == []
    assert stub.witness.problems() == []
    assert launch


def test_the_cheapest_place_with_room_is_taken(sky: Sky, stub: StubProcess) -> None:
    stub.plan(places=TWO_PLACES)
    sky.launch("one", "true", resources=ANYWHERE)
    sky.launch("two", "true", resources=ANYWHERE)
    assert [row["infra"] for row in sky.ask("status")] == ["slurm/stub/cheap", "slurm/stub/dear"]
    assert [row["usd_per_hour"] for row in sky.ask("status")] == [360.0, 3600.0]


def test_a_launch_that_moves_on_to_another_place_has_the_price_of_that(
    sky: Sky, stub: StubProcess
) -> None:
    stub.plan(places=TWO_PLACES, provision_s=600)
    sky.ask("launch", cluster_name="one", task=task("true", resources=ANYWHERE))
    assert eventually(lambda: sky.status_of("one") == "INIT")
    [first] = sky.ask("status")
    with stub.cloud.change("one") as row:
        row |= {"infra": "slurm/stub/dear", "usd_per_hour": 3600.0}
        row["resources"]["infra"] = row["infra"]
    [then] = sky.ask("status")
    assert first["hash"] == then["hash"]
    assert [row["infra"] for row in (first, then)] == ["slurm/stub/cheap", "slurm/stub/dear"]
    assert [row["usd_per_hour"] for row in (first, then)] == [360.0, 3600.0]


def test_each_place_without_room_is_reported(sky: Sky, stub: StubProcess) -> None:
    stub.plan(places=TWO_PLACES)
    many = task("true", 5, resources=ANYWHERE)
    error = refusal(sky.do, "launch", cluster_name="one", task=many)
    assert error.kind == "no_capacity"
    assert len(error.detail["reasons"]) == len(TWO_PLACES)
    assert sky.ask("status") == []


def test_what_fits_no_place_is_invalid(sky: Sky) -> None:
    strange = task("true", resources={"infra": "slurm/elsewhere"})
    assert refusal(sky.do, "launch", cluster_name="one", task=strange).kind == "invalid"


def test_a_plan_lists_the_places_with_prices_for_all_nodes(sky: Sky, stub: StubProcess) -> None:
    stub.plan(places=TWO_PLACES)
    rows = sky.ask("plan", task=task("true", 2, resources=ANYWHERE))["candidates"]
    assert [(row["infra"], row["usd_per_hour"], row["chosen"]) for row in rows] == [
        ("slurm/stub/cheap", 720.0, True),
        ("slurm/stub/dear", 7200.0, False),
    ]


def test_a_second_launch_uses_the_cluster_that_is_there(sky: Sky, stub: StubProcess) -> None:
    sky.launch("one", "true")
    assert sky.launch("one", "true", name="mp-2") == 2
    assert len(stub.witness.events("up")) == 1


def test_a_task_of_more_nodes_than_the_cluster_has_is_refused(sky: Sky) -> None:
    sky.launch("one", "true")
    assert refusal(sky.do, "launch", cluster_name="one", task=task("true", 2)).kind == "mismatch"


def test_a_bill_grows_with_wall_time_until_the_cluster_is_gone(sky: Sky, stub: StubProcess) -> None:
    stub.plan(places=TWO_PLACES)
    sky.launch("one", "true", 2, resources={"infra": "slurm/stub/dear"})
    began = stub.witness.events("launch_begun")[0]["at"]
    assert eventually(lambda: sky.bill("one")["usd"] > 1)
    sky.do("down", cluster_name="one")
    seconds = stub.witness.events("gone")[0]["at"] - began
    assert sky.bill("one")["usd"] == pytest.approx(2 * seconds, abs=0.3)
    assert sky.bill("one")["status"] is None


def test_spot_costs_what_spot_costs(sky: Sky, stub: StubProcess) -> None:
    stub.plan(places=TWO_PLACES)
    sky.launch("one", "true", resources={**ANYWHERE, "use_spot": True})
    assert sky.ask("status")[0]["use_spot"]
    assert sky.ask("status")[0]["usd_per_hour"] == 36.0


def test_an_idle_cluster_goes_away_by_itself_but_not_while_a_job_runs(
    sky: Sky, stub: StubProcess
) -> None:
    stub.plan(minute_s=0.3)
    go = stub.state / "go"
    job = task(f"until [ -e {go} ]; do sleep 0.05; done")
    sky.do("launch", cluster_name="one", task=job, idle_minutes=1, down=True)
    assert not eventually(lambda: sky.status_of("one") is None, timeout_s=1)
    go.touch()
    assert eventually(lambda: sky.status_of("one") is None)
    assert stub.witness.events("gone")[0]["why"] == "autodown"


def test_only_some_places_can_stop_machines(sky: Sky, stub: StubProcess) -> None:
    stub.plan(places=[{"infra": "slurm/stub/all"}, {"infra": "slurm/stub/vms", "can_stop": True}])
    sky.launch("one", "true")
    sky.launch("two", "touch ~/kept", resources={"infra": "slurm/stub/vms"})
    assert refusal(sky.do, "stop", cluster_name="one").kind == "not_supported"
    sky.do("stop", cluster_name="two")
    assert sky.status_of("two") == "STOPPED"
    assert refusal(sky.ask, "jobs", cluster_name="two").kind == "not_up"
    sky.do("start", cluster_name="two")
    assert sky.status_of("two") == "UP"
    assert (stub.cloud.node("two", 0) / "kept").exists()
