"""The pages that set how machines are shared: queues, pools, quotas, projects and weights."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.backends.fake.backend import FakeBackend
from jobs.models import Membership, Pool, Project, Queue, Quota
from jobs.statuses import Role
from tests.factories import make_job, make_member, make_project, make_user
from tests.integration.web.conftest import Browser, browser_of, text_of

POOL = {"name": "a100", "backend": "fake", "caps": "nodes=8, gpus:a100=64", "patience": "12h"}


@pytest.fixture(autouse=True)
def fake(settings: Any, tmp_path: Any) -> FakeBackend:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path)
    return FakeBackend(tmp_path)


@pytest.fixture
def root(db: None) -> Browser:
    return browser_of(make_user("root", is_superuser=True))


def test_a_pool_is_created_changed_and_deleted(root):
    assert root.post("/settings/pools", POOL).status_code == 302
    pool = Pool.objects.get()
    assert pool.caps == {"nodes": 8, "gpus:A100": 64}
    page = root.get("/settings/pools/a100").content.decode()
    assert 'value="nodes=8 gpus:A100=64"' in page and 'value="12h"' in page
    change = {"backend": "fake", "caps": "nodes=4", "reclaim": "on"}
    root.post("/settings/pools/a100", change)
    pool.refresh_from_db()
    assert (pool.caps, pool.reclaim, pool.patience_s) == ({"nodes": 4}, True, 12 * 3600)
    root.post("/settings/pools/a100/delete")
    assert not Pool.objects.exists()


def test_a_pool_whose_backend_is_gone_keeps_it_until_another_is_chosen(root):
    pool = Pool.objects.create(name="a100", backend_name="a-gone-one", caps={"nodes": 8})
    page = root.get("/settings/pools/a100").content.decode()
    assert '<option value="a-gone-one" selected>a-gone-one (not available)</option>' in page
    assert root.get("/settings/pools").content.decode().count("not available") == 0
    root.post("/settings/pools/a100", {"backend": "a-gone-one", "caps": "nodes=4"})
    pool.refresh_from_db()
    assert (pool.backend_name, pool.caps) == ("a-gone-one", {"nodes": 4})
    root.post("/settings/pools/a100", {"backend": "fake", "caps": "nodes=4"})
    pool.refresh_from_db()
    assert pool.backend_name == "fake"


def test_errors_stand_beside_the_field_that_they_are_about(root):
    answer = root.post("/settings/pools", {**POOL, "caps": "nodes=8 shoes=2"})
    form = answer.context["form"]
    assert list(form.errors) == ["caps"] and "shoes" in text_of(answer)
    assert not Pool.objects.exists()
    for caps in ("nodes", "nodes=2 nodes=3"):
        assert list(root.post("/settings/pools", {**POOL, "caps": caps}).context["form"].errors)
    root.post("/settings/pools", POOL)
    assert "one named a100 already" in text_of(root.post("/settings/pools", POOL))
    assert root.get("/settings/pools/gone").status_code == 404


def test_a_queue_with_jobs_is_kept_and_one_without_is_deleted(root, project):
    root.post("/settings/queues", {"name": "night", "rank": "-5", "preemptible": "on"})
    queue = Queue.objects.get(name="night")
    assert (queue.rank, queue.preemptible) == (-5, True)
    root.post("/settings/queues/night", {"rank": "7", "pool": ""})
    queue.refresh_from_db()
    assert (queue.rank, queue.preemptible) == (7, False)
    job = make_job(project, queue_name="night")
    kept = text_of(root.post("/settings/queues/night/delete", follow=True))
    assert f"the first: {job.pk}" in kept
    job.delete()
    root.post("/settings/queues/night/delete")
    assert not Queue.objects.filter(name="night").exists()


def test_quotas_are_set_for_a_project_and_for_one_person(root, project):
    ana = make_member(project, Role.MEMBER, username="ana")
    form = {"project": "rl", "caps": "nodes=8 usd_per_hour=40", "nominal": "nodes=4"}
    root.post("/settings/quotas", form)
    quota = Quota.objects.get()
    assert (quota.caps, quota.nominal) == ({"nodes": 8, "usd_per_hour": 40}, {"nodes": 4})
    root.post("/settings/quotas", {"project": "rl", "user": "ana", "caps": "jobs=1"})
    of_ana = Quota.objects.get(user=ana)
    root.post(f"/settings/quotas/{of_ana.pk}", {"caps": "jobs=3"})
    of_ana.refresh_from_db()
    assert of_ana.caps == {"jobs": 3}
    refused = root.post("/settings/quotas", {"caps": "jobs=1"})
    assert list(refused.context["form"].errors) == ["project"]
    root.post(f"/settings/quotas/{quota.pk}/delete")
    assert Quota.objects.get() == of_ana


def test_a_new_quota_never_replaces_another_one(root, project):
    make_member(project, Role.MEMBER, username="ana")
    Queue.objects.create(name="night")
    for scope in ({"project": "rl"}, {"project": "rl", "user": "ana"}, {"queue": "night"}):
        root.post("/settings/quotas", {**scope, "caps": "nodes=8"})
        quota = Quota.objects.latest("pk")
        Quota.objects.filter(pk=quota.pk).update(nominal={"nodes": 4})
        refused = root.post("/settings/quotas", {**scope, "caps": "nodes=2"})
        assert f'<a href="/settings/quotas/{quota.pk}">' in refused.content.decode()
        quota.refresh_from_db()
        assert (quota.caps, quota.nominal) == ({"nodes": 8}, {"nodes": 4})


def test_a_project_is_created_and_weighed(root):
    made = root.post("/settings/all-projects", {"slug": "arms", "name": "Arms"})
    assert made["Location"] == "/arms/members"
    assert Membership.objects.get().role == Role.ADMIN
    assert "reserved" in text_of(root.post("/settings/all-projects", {"slug": "settings"}))
    root.post("/settings/all-projects/arms/weight", {"weight": "2.5"})
    assert Project.objects.get().share_weight == 2.5
    for wrong in ("0", "much"):
        text = text_of(
            root.post("/settings/all-projects/arms/weight", {"weight": wrong}, follow=True)
        )
        assert "from 0.001 to 1000" in text
    assert 'value="2.5"' in root.get("/settings/all-projects").content.decode()


def test_the_form_of_a_quota_explains_the_nominal_share_and_asks_for_the_limit_beside_it(root):
    page = root.get("/settings/quotas").content.decode()
    assert 'id="term-nominal-share"' in page
    assert "can take back by preemption" in page
    make_project("rl")
    refused = text_of(root.post("/settings/quotas", {"project": "rl", "nominal": "nodes=4"}))
    assert "Enter the limit too: the most that may run at once, with what is borrowed." in refused
    assert not Quota.objects.exists()
