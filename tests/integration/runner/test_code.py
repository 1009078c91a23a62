"""The work directory of a job to which laptops may send code."""

from __future__ import annotations

from collections.abc import Callable

from tests.runner_harness import RunnerRig

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
