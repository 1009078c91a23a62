"""The work directory of a job to which laptops may send code."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from monarch_client.sync.scanning import Scanner
from monarch_client.sync.sending import CodeSender
from monarch_client.sync.stat_cache import StatCache
from tests.node_laptop import Laptop, stream_pid
from tests.runner_harness import RunnerRig, wait_until

pytestmark = pytest.mark.feature("S1.4")
MakeRig = Callable[..., RunnerRig]


def test_the_work_directory_of_a_job_with_a_gateway_is_a_generation(make_rig: MakeRig) -> None:
    rig = make_rig(
        gateway=True,
        setup="echo built > product; pwd > where",
        run="pwd; cat where product; python -c 'import sys, mod; print(mod.__file__, *sys.path)'",
    )
    rig.write("mod.py", "")
    assert rig.run()["exit_code"] == 0
    workdir = rig.root() / "workdir"
    lines = rig.ingest.texts()
    assert lines[:3] == [str(workdir), str(workdir), "built"]
    file, *path = lines[3].split()
    assert file == str(workdir / "mod.py")
    assert str(workdir) in path
    generation = workdir.resolve()
    assert generation.parent == rig.root() / "code" / "gen"
    assert (generation / "mod.py").stat().st_mode & 0o777 == 0o444
    assert [path.name for path in (rig.root() / "code" / "gen").iterdir()] == [generation.name]


def test_a_work_directory_that_cannot_be_a_generation_stays_as_it_is(make_rig: MakeRig) -> None:
    rig = make_rig(gateway=True, run="cat mod.py")
    rig.write("mod.py", "x = 1")
    rig.write("MOD.py", "x = 2")
    assert rig.run()["exit_code"] == 0
    assert rig.ingest.texts() == ["x = 1"]
    assert not (rig.root() / "workdir").is_symlink()
    (remark,) = rig.ingest.texts("portal")
    assert remark.startswith("Code cannot be synced to this node: ")


def test_code_reaches_all_nodes_also_after_the_death_of_a_process(
    make_laptop: Callable[..., tuple[RunnerRig, Laptop]], tmp_path: Path
) -> None:
    rig, laptop = make_laptop(3, gateway=True, run="sleep 100", setup="echo product >product")
    code = tmp_path / "code"
    code.mkdir()
    scanner = Scanner(code, StatCache())
    for number, victim in enumerate((None, 1, 0)):
        if victim is not None:
            former = stream_pid(rig, victim)
            os.kill(former, signal.SIGKILL)
            wait_until(lambda pid=former: not Path(f"/proc/{pid}").exists())
        (code / "mod.py").write_text(f"x = {number}")
        with laptop.stream(0, "code") as (answer, connection, file):
            assert answer == {"ok": True}
            sender = CodeSender(file, connection.sendall, lambda _progress: None)
            sent = sender.send(scanner.scan())
        assert (sent.ranks, sent.late) == (3, {})
        for rank in range(3):
            workdir = rig.root(rank) / "workdir"
            assert (workdir / "mod.py").read_text() == f"x = {number}"
            assert (workdir / "product").read_text() == "product\n"
    assert [rig.log(rank) for rank in rig.runners] == ["", "", ""]
