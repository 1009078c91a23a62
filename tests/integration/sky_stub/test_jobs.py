"""Jobs behind the stub: real processes, and a log as SkyPilot writes it."""

from __future__ import annotations

import re

from tests.integration.sky_stub.conftest import Sky, task
from tests.sky_stub import processes
from tests.sky_stub.process import StubProcess
from tests.waiting import eventually

PREFIX = re.compile(r"^\x1b\[36m\((?P<who>[^)]+)\)\x1b\[0m (?P<text>.*)$", re.MULTILINE)


def lines_of(log: str) -> dict[str, list[str]]:
    """Return what each node printed, by the beginning of its prefix."""
    found: dict[str, list[str]] = {}
    for match in PREFIX.finditer(log):
        found.setdefault(match["who"].split(",")[0], []).append(match["text"])
    return found


def test_a_task_runs_on_every_node_in_a_home_and_at_an_address_of_its_own(sky: Sky) -> None:
    run = 'echo "$SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES in $HOME at" $SKYPILOT_NODE_IPS'
    job = sky.launch(
        "one",
        f"{run}; echo $(cat data); echo $WORD",
        2,
        workdir=sky.folder(data="brought"),
        secrets={"WORD": "hidden"},
    )
    printed = lines_of(sky.log("one", job))
    both = [printed["head"], printed["worker1"]]
    addresses = [pair[0] for pair in sky.ask("status")[0]["addresses"]]
    assert [texts[0].split()[:3] for texts in both] == [["0", "of", "2"], ["1", "of", "2"]]
    assert len({texts[0].split()[4] for texts in both}) == 2
    assert all(texts[0].split()[-2:] == addresses for texts in both)
    assert all(texts[1:] == ["brought", "hidden"] for texts in both)


def test_a_log_begins_and_ends_as_skypilots_and_lacks_an_unfinished_last_line(sky: Sky) -> None:
    job = sky.launch("one", "echo whole; printf unfinished")
    log = sky.log("one", job)
    first, second, *_, last = [line for line in log.splitlines() if not line.startswith("INFO: ")]
    assert "Waiting for task resources on 1 node." in first
    assert "Job started. Streaming logs..." in second
    assert lines_of(log) == {"mp-1": ["whole"]}
    assert last == "\x1b[0m\x1b[32m✓ Job finished (status: SUCCEEDED).\x1b[0m\x1b[0m"


def test_the_tail_of_a_log_is_its_last_lines(sky: Sky) -> None:
    job = sky.launch("one", "seq 100")
    sky.log("one", job)
    assert lines_of(sky.log("one", job, tail=3)) == {"mp-1": ["98", "99", "100"]}


def test_files_arrive_without_their_modes(sky: Sky, stub: StubProcess) -> None:
    folder = sky.folder(data="secret")
    (stub.state.parent / "workdir" / "data").chmod(0o600)
    job = sky.launch("one", "stat -c %a data", workdir=folder)
    assert lines_of(sky.log("one", job)) == {"mp-1": ["644"]}


def test_what_was_brought_before_stays_when_more_is_brought(sky: Sky, stub: StubProcess) -> None:
    sky.launch("one", "true", workdir=sky.folder(first="1"))
    (stub.state.parent / "workdir" / "first").unlink()
    more = task("echo $(cat first second)", workdir=sky.folder(second="2"))
    job = sky.do("execute", cluster_name="one", task=more)["job_id"]
    assert lines_of(sky.log("one", job)) == {"mp-1": ["12"]}


def test_lines_of_several_nodes_mix_when_it_is_planned(sky: Sky, stub: StubProcess) -> None:
    stub.plan(interleave=True)
    job = sky.launch("one", "for i in $(seq 400); do echo line-$i; sleep 0.001; done", 2)
    log = sky.log("one", job)
    torn = [line for line in log.splitlines() if re.search(r".\x1b\[36m\(", line)]
    assert torn
    assert log[log.index("Streaming") :].count("\n") == 2 + 2 * 400


def test_a_job_fails_with_the_first_node_that_does_and_the_others_are_ended(sky: Sky) -> None:
    job = sky.launch("one", "[ $SKYPILOT_NODE_RANK = 1 ] && exit 7; exec sleep 600", 2)
    log = sky.log("one", job)
    assert "return code list:\x1b[0m [143, 7]" in log
    assert "Job finished (status: FAILED)" in log
    assert sky.job_status("one", job) == "FAILED"


def test_a_setup_that_fails_ends_the_job_before_it_runs(sky: Sky) -> None:
    job = sky.launch("one", "echo never", setup="echo preparing; exit 3")
    log = sky.log("one", job)
    assert list(lines_of(log).values()) == [["preparing"]]
    assert sky.job_status("one", job) == "FAILED_SETUP"


def test_a_cancelled_job_may_end_politely(sky: Sky) -> None:
    job = sky.launch("one", "trap 'echo bye; exit 0' TERM; echo ready; sleep 600 & wait")
    assert eventually(lambda: "ready" in sky.log_now("one", job))
    sky.do("cancel_job", cluster_name="one", job_id=job)
    assert lines_of(sky.log("one", job))["mp-1"] == ["ready", "bye"]
    assert sky.job_status("one", job) == "CANCELLED"


def test_a_cancelled_job_that_clings_to_life_is_killed_with_all_its_sessions(
    sky: Sky, stub: StubProcess
) -> None:
    stub.plan(cancel_grace_s=0.3)
    run = "trap '' TERM; setsid sleep 601 & echo ready; while true; do sleep 0.05; done"
    job = sky.launch("one", run)
    assert eventually(lambda: "ready" in sky.log_now("one", job))
    sky.do("cancel_job", cluster_name="one", job_id=job)
    assert sky.job_status("one", job) == "CANCELLED"
    assert processes.marked(processes.JOB_MARK, stub.state) == set()


def test_nothing_of_a_job_outlives_it(sky: Sky, stub: StubProcess) -> None:
    job = sky.launch("one", "setsid sleep 602 > /dev/null & echo done")
    assert "Job finished (status: SUCCEEDED)" in sky.log("one", job)
    assert eventually(lambda: not processes.marked(processes.JOB_MARK, stub.state))
