"""Lines reach a portal that restarts: each one, once, in order."""

from __future__ import annotations

from collections.abc import Callable

from monarch_client.runner.journal.journal import read_leftovers
from tests.runner_harness import RunnerRig, wait_until

MakeRig = Callable[..., RunnerRig]
COUNT = "for i in $(seq {}); do echo $i; sleep 0.005; done"


def assert_each_once(rig: RunnerRig, count: int) -> None:
    for node in rig.config["nodes"]:
        assert rig.ingest.texts("stdout", node["rank"]) == [str(n) for n in range(1, count + 1)]
    assert rig.ingest.holes == []
    assert rig.ingest.of_kind("end")


def test_a_portal_that_is_away_for_a_while_misses_nothing(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run=COUNT.format(200))
    rig.start()
    rig.ingest.wait_for(lambda: len(rig.ingest.texts()) > 20)
    rig.ingest.stop()
    # The job ends while the portal is away; its runner stays for the portal's return.
    verdict = rig.root() / "state" / "verdict.json"
    wait_until(verdict.exists)
    assert rig.runners[0].poll() is None
    rig.ingest.start()
    assert set(rig.wait().values()) == {0}
    assert_each_once(rig, 200)


def test_a_portal_that_comes_back_at_another_port_is_found(make_rig: MakeRig) -> None:
    rig = make_rig(run=COUNT.format(200))
    portal_file = rig.folder / "portal.json"
    rig.config["portal_file"] = str(portal_file)
    rig.start()
    rig.ingest.wait_for(lambda: len(rig.ingest.texts()) > 20)
    rig.ingest.move()
    portal_file.write_text(f'{{"url": "{rig.ingest.url}"}}')
    rig.wait()
    assert_each_once(rig, 200)


def test_answers_that_get_lost_double_nothing(make_rig: MakeRig) -> None:
    rig = make_rig(run=COUNT.format(200))
    rig.ingest.lost_answers = 4
    rig.ingest.faults = [500, 503]
    rig.run()
    assert rig.ingest.duplicates > 0
    assert_each_once(rig, 200)


def test_an_attempt_that_the_portal_has_closed_ends_here_too(make_rig: MakeRig) -> None:
    rig = make_rig(run="sleep 300; touch done")
    rig.ingest.refusals = ["attempt_closed"]
    rig.start()
    assert rig.wait() == {0: 0}
    assert not (rig.root() / "workdir" / "done").exists()
    assert rig.ingest.requests == rig.ingest.requests[:1]
    leftovers = b"".join(read_leftovers(rig.root() / "state" / "journal"))
    assert b'"CANCELLED_BY_USER"' in leftovers


def test_a_signal_ends_the_waiting_for_a_portal(make_rig: MakeRig) -> None:
    rig = make_rig(run="echo hi")
    rig.ingest.stop()
    rig.start()
    wait_until((rig.root() / "state" / "verdict.json").exists)
    rig.stop_rank(0)
    assert rig.wait(5) == {0: 0}
    leftovers = b"".join(read_leftovers(rig.root() / "state" / "journal"))
    assert b'"hi"' in leftovers
    assert b'"COMPLETED"' in leftovers


def test_after_its_time_a_runner_waits_no_longer(make_rig: MakeRig) -> None:
    rig = make_rig(run="echo hi", linger_s=0.5)
    rig.ingest.stop()
    rig.start()
    assert rig.wait(10) == {0: 0}


def test_an_idle_job_is_heard_of_every_few_seconds(make_rig: MakeRig) -> None:
    rig = make_rig(run="echo up; sleep 100", metrics_s=0)
    rig.start()
    rig.ingest.wait_for(lambda: 0 in rig.ingest.requests, 60)
    rig.stop_rank(0)
    rig.wait()
