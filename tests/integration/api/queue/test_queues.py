"""Queues, pools, quotas, weights over REST: permissions, refusals, and usage."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from jobs.models import Job, Pool, Project, Queue, Quota
from jobs.statuses import JobStatus, Role
from tests.each_case import check_each
from tests.factories import make_attempt, make_job, make_member, make_project, make_spec, make_user
from tests.integration.api.conftest import assert_problem, caller_for, messages
from tests.undone import undone

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake"), pytest.mark.feature("P5.1")]

POOL = {"backend": "fake", "caps": {"nodes": 8, "gpus:h100": 64}, "patience": "2h"}
CHANGES: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", "/pools/big", POOL),
    ("DELETE", "/pools/big", {}),
    ("PUT", "/queues/night", {"rank": 1}),
    ("DELETE", "/queues/night", {}),
    ("POST", "/quotas", {"project": "rl", "caps": {"jobs": 1}}),
    ("DELETE", "/quotas/1", {}),
    ("PUT", "/projects/rl/weight", {"weight": 2}),
]


def put(caller: Any, path: str, **body: Any) -> dict[str, Any]:
    answer = caller.send("PUT", path, body)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def rows(caller: Any, path: str) -> list[dict[str, Any]]:
    answer = caller.get(path)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def job_of(project: Project, nodes: int = 1, gpus: str = "", **fields: Any) -> Job:
    spec = make_spec(num_nodes=nodes, **({"resources": {"accelerators": gpus}} if gpus else {}))
    return make_job(project, num_nodes=nodes, spec=spec, **fields)


def running(project: Project, nodes: int = 1, gpus: str = "", **fields: Any) -> Job:
    job = job_of(project, nodes, gpus, status=JobStatus.RUNNING, **fields)
    make_attempt(job)
    return job


def test_only_administrators_of_the_installation_set_anything(
    project, viewer, member, admin, stranger
):
    read_only = caller_for(make_user(is_superuser=True), read_only=True)
    bound = caller_for(make_user(is_superuser=True), project=project)
    callers = {"viewer": viewer, "member": member, "admin": admin, "stranger": stranger}
    callers |= {"read-only token of root": read_only, "bound token of root": bound}

    def check(who: str, change: tuple[str, str, dict[str, Any]]) -> None:
        with undone():
            assert_problem(callers[who].send(*change), 403, "permission_denied")
            assert not (Pool.objects.exists() or Queue.objects.count() > 1)
            assert not Quota.objects.exists()
            assert Project.objects.get(pk=project.pk).share_weight == 1.0

    check_each(itertools.product(callers, CHANGES), check)


def test_a_pool_is_made_changed_in_part_and_deleted_and_each_wakes_the_queue(
    root, member, no_broker, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        made = put(root, "/pools/big", **POOL)
    assert ("queue", None) in no_broker
    assert (made["patience_s"], made["half_life_s"]) == (7200, 7 * 86400)
    amounts = {row["what"]: (row["used"], row["cap"], row["free"]) for row in made["amounts"]}
    assert amounts == {"nodes": (0, 8, 8), "gpus:H100": (0, 64, 64)}
    assert put(root, "/pools/big", half_life="1d")["half_life_s"] == 86400
    assert Pool.objects.get().caps == {"nodes": 8, "gpus:H100": 64}
    assert [row["name"] for row in rows(member, "/pools") if row["kind"] == "pool"] == ["big"]
    assert root.delete("/pools/big").status_code == 204
    assert_problem(root.delete("/pools/big"), 404, "not_found")


@pytest.mark.feature("P5.4")
def test_preemption_is_off_until_it_is_set_and_stays_until_it_is_set_again(root, member):
    made = put(root, "/pools/big", **POOL)
    assert (made["reclaim"], made["preempts_by_rank"]) == (False, False)
    put(root, "/pools/big", reclaim=True)
    made = put(root, "/pools/big", preempts_by_rank=True, patience="3h")
    assert (made["reclaim"], made["preempts_by_rank"]) == (True, True)
    assert put(root, "/pools/big", reclaim=False)["preempts_by_rank"] is True
    assert Pool.objects.get().reclaim is False
    assert put(root, "/queues/night", rank=-5)["preemptible"] is False
    assert put(root, "/queues/night", preemptible=True)["rank"] == -5
    assert put(root, "/queues/night", rank=-6)["preemptible"] is True
    assert_problem(root.send("PUT", "/queues/night", {"preemptible": "x"}), 400, "invalid_request")
    shown = {row["name"]: row["preemptible"] for row in rows(member, "/queues")}
    assert shown == {"default": False, "night": True}


@pytest.mark.feature("P5.4")
def test_a_job_says_whether_it_may_be_stopped_also_where_its_queue_says_it(root, member, project):
    put(root, "/queues/night", preemptible=True)
    jobs = [job_of(project), job_of(project, preemptible=True), job_of(project, queue_name="night")]
    shown = {row["id"]: row["preemptible"] for row in rows(member, "/projects/rl/jobs")}
    assert [shown[job.pk] for job in jobs] == [False, True, True]
    assert member.get(f"/projects/rl/jobs/{jobs[2].pk}").json()["preemptible"] is True


def test_every_error_of_a_pool_is_reported_at_once_with_what_is_known(root):
    body = {
        "backend": "mars",
        "caps": {"gpu": 1, "jobs": 2, "nodes": -1, "gpus:": 1, "gpus:H100": 1.5},
        "patience": "soon",
    }
    reported = messages(root.send("PUT", "/pools/Big", body))
    assert set(reported) == {
        "name", "backend", "caps.gpu", "caps.jobs", "caps.nodes", "caps.gpus:", "caps.gpus:H100",
        "patience",
    }  # fmt: skip
    assert "there are: nodes, gpus, gpus:TYPE such as gpus:H100" in reported["caps.gpu"]
    assert "there are: fake" in reported["backend"]
    assert not Pool.objects.exists()


def test_a_type_of_gpu_is_the_same_in_small_letters(root):
    reported = messages(
        root.send("PUT", "/pools/big", {"backend": "fake", "caps": {"gpus:a": 1, "gpus:A": 2}})
    )
    assert "without case" in reported["caps.gpus:A"]


@pytest.mark.parametrize("caps", [{"nodes": True}, {"nodes": "8"}, {"nodes": None}, {"nodes": 1e9}])
def test_an_amount_is_a_whole_number(root, caps):
    answer = root.send("PUT", "/pools/big", {"backend": "fake", "caps": caps})
    assert "no whole number from 0 to 1,000,000" in messages(answer)["caps.nodes"]


def test_a_pool_that_queues_use_stays_and_says_which(root):
    put(root, "/pools/big", **POOL)
    put(root, "/queues/night", pool="big")
    body = assert_problem(root.delete("/pools/big"), 409, "conflict")
    assert "used by the queues night" in body["detail"]
    put(root, "/queues/night", pool="")
    assert root.delete("/pools/big").status_code == 204


def test_a_queue_in_which_jobs_wait_or_run_stays_and_says_which(root, project):
    put(root, "/queues/night", rank=5)
    first = job_of(project, queue_name="night")
    second = running(project, queue_name="night")
    body = assert_problem(root.delete("/queues/night"), 409, "conflict")
    assert "1 jobs wait and 1 run" in body["detail"]
    assert f"{first.pk}, {second.pk}" in body["detail"]
    assert "mportal cancel" in body["detail"]
    Job.objects.update(status=JobStatus.CANCELLED, ended_at=first.created_at)
    assert root.delete("/queues/night").status_code == 204


def test_the_default_queue_stays(root):
    assert_problem(root.delete("/queues/default"), 409, "conflict")
    assert put(root, "/queues/default", rank=3)["rank"] == 3


def test_a_queue_takes_no_pool_of_another_backend_than_its_jobs(root, project):
    put(root, "/pools/big", **POOL)
    put(root, "/queues/night", rank=5)
    job_of(project, queue_name="night", backend_name="local")
    reported = messages(root.send("PUT", "/queues/night", {"pool": "big", "rank": 5000}))
    assert "1 jobs wait or run in queue night that are not for fake" in reported["pool"]
    assert "-1,000 to 1,000" in reported["rank"]


def test_a_pool_keeps_its_backend_while_jobs_are_in_it(root, project, settings):
    settings.MPORTAL_LOCAL_BACKEND = True
    put(root, "/pools/big", **POOL)
    put(root, "/queues/night", pool="big")
    job_of(project, queue_name="night")
    reported = messages(root.send("PUT", "/pools/big", {"backend": "local"}))
    assert "1 jobs wait or run there on fake" in reported["backend"]


def test_queues_stand_by_rank_with_the_jobs_of_all_projects(root, member, project):
    put(root, "/queues/night", rank=-5)
    put(root, "/queues/urgent", rank=5)
    job_of(make_project(), queue_name="urgent")
    job_of(project, held=True)
    running(project)
    found = [
        (row["name"], row["waiting"], row["held"], row["running"])
        for row in rows(member, "/queues")
    ]
    assert found == [("urgent", 1, 0, 0), ("default", 0, 1, 1), ("night", 0, 0, 0)]


def test_what_runs_is_counted_in_its_pool_its_quotas_and_its_share(root, member, project):
    put(root, "/pools/big", **POOL)
    put(root, "/queues/night", pool="big")
    ana = make_member(project, username="ana")
    whose: list[dict[str, Any]] = [
        {"project": "rl"},
        {"queue": "night"},
        {"project": "rl", "per_person": True},
        {"project": "rl", "user": "ana", "pool": "big"},
    ]
    for each in whose:
        answer = root.post("/quotas", {**each, "caps": {"gpus:h100": 32, "jobs": 3}})
        assert answer.status_code == 200, answer.content
    running(project, 2, "H100:8", queue_name="night", submitted_by=ana)
    running(project)
    big = next(row for row in rows(member, "/pools") if row["name"] == "big")
    assert [(each["used"], each["free"]) for each in big["amounts"]] == [(2, 6), (16, 48)]
    fake = next(row for row in rows(member, "/pools") if row["name"] == "fake")
    assert [(each["what"], each["used"], each["cap"]) for each in fake["amounts"]] == [
        ("nodes", 3, 16)
    ]
    used = {
        row["kind"]: {each["what"]: each["used"] for each in row["amounts"]}
        for row in rows(member, "/quotas")
    }
    assert used["project"] == {"gpus:H100": 16, "jobs": 2}
    assert used["queue"] == used["person"] == {"gpus:H100": 16, "jobs": 1}
    assert used["each_person"] == {"gpus:H100": None, "jobs": None}
    of_each = next(row for row in rows(member, "/quotas") if row["kind"] == "each_person")
    assert ("ana", 1.0) in [
        (each["user"], each["amounts"][0]["used"]) for each in of_each["people"]
    ]
    share = next(row for row in rows(member, "/shares") if row["place"] == "big")
    assert share["project"] == "rl" and share["used_hours"] >= 15 and share["percent"] == 100


@pytest.mark.feature("P5.2")
def test_a_weight_is_set_and_counts(root, member, project):
    running(project)
    before = rows(member, "/shares")[0]
    assert put(root, "/projects/rl/weight", weight=4) == {"project": "rl", "weight": 4.0}
    after = rows(member, "/shares")[0]
    assert after["counts_for"] == pytest.approx(before["counts_for"] / 4, rel=0.01)
    assert (
        "0.001 to 1000"
        in messages(root.send("PUT", "/projects/rl/weight", {"weight": 0}))["weight"]
    )
    assert_problem(root.send("PUT", "/projects/nix/weight", {"weight": 1}), 404, "not_found")


def test_of_other_projects_nothing_has_a_name(stranger, root, member, project, fake):
    fake.set_capacity(1)
    root.post("/quotas", {"project": "rl", "caps": {"jobs": 5}})
    running(project)
    waits = job_of(project, name="secret-job")
    assert rows(stranger, "/quotas") == []
    (share,) = rows(stranger, "/shares")
    assert (share["project"], share["weight"], share["projects"]) == ("", None, 1)
    (row,) = rows(stranger, "/queue")
    assert (row["job_id"], row["name"], row["owner"], row["sentence"]) == (None, "", "", "")
    assert row["position"] == 1 and row["needs"] == "1 node"
    (row,) = rows(member, "/queue")
    assert (row["job_id"], row["name"]) == (waits.pk, "secret-job")
    assert row["sentence"] == "Needs 1 node; 0 of 1 are free on fake."
    assert rows(member, "/projects/rl/quotas")[0]["amounts"][0]["used"] == 1
    assert_problem(stranger.get("/projects/rl/quotas"), 404, "not_found")


def test_those_who_wait_come_page_by_page_in_their_order(member, project, fake):
    fake.set_capacity(0)
    jobs = [job_of(project, submitted_by=member.user) for _ in range(5)]
    first = member.get("/queue", {"limit": 2}).json()
    second = member.get("/queue", {"limit": 2, "cursor": first["next"]}).json()
    last = member.get("/queue", {"limit": 2, "cursor": second["next"]}).json()
    found = [row["job_id"] for part in (first, second, last) for row in part["results"]]
    assert found == [job.pk for job in jobs]
    assert [row["position"] for row in last["results"]] == [5]
    assert (first["previous"], last["next"], last["previous"]) == (None, None, "2")
    assert_problem(member.get("/queue", {"cursor": "x"}), 400, "invalid_request")


def test_a_role_in_a_project_is_enough_to_look(project):
    caller = caller_for(make_member(project, Role.VIEWER))
    for path in ("/pools", "/queues", "/quotas", "/shares", "/queue"):
        assert caller.get(path).status_code == 200
