from __future__ import annotations

from pathlib import Path

from monarch_client.runner.base.memory_pressure import oom_kills


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_counter_of_cgroup_version_2_is_read(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/job.slice/a\n")
    put(tmp_path, "sys/fs/cgroup/job.slice/a/memory.events", "low 0\noom 4\noom_kill 3\n")
    assert oom_kills(tmp_path) == 3


def test_inside_a_container_the_own_group_is_the_root(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/\n")
    put(tmp_path, "sys/fs/cgroup/memory.events", "oom_kill 1\n")
    assert oom_kills(tmp_path) == 1


def test_the_counter_of_cgroup_version_1_is_read(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n")
    put(tmp_path, "sys/fs/cgroup/memory/x/memory.oom_control", "under_oom 0\noom_kill 2\n")
    assert oom_kills(tmp_path) == 2


def test_where_nothing_can_be_read_nothing_is_claimed(tmp_path: Path) -> None:
    assert oom_kills(tmp_path) == 0
    put(tmp_path, "proc/self/cgroup", "0::/gone\n")
    assert oom_kills(tmp_path) == 0
