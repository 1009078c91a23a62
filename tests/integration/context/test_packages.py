"""Packages of tasks: wheels of the test's own, so nothing is downloaded."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from monarch_client.context import ActorOptions, JobContext, RuntimeEnv, TaskOptions
from monarch_client.context.errors import PackagesError

pytestmark = [pytest.mark.slow, pytest.mark.feature("S4.8")]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def wheel(folder: Path, version: int) -> str:
    """Write a wheel of a package with one module; return its path."""
    path = folder / f"of_the_test-{version}-py3-none-any.whl"
    info = f"of_the_test-{version}.dist-info"
    files = {
        "of_the_test.py": f"version = {version}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: of-the-test\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return str(path)


def test_tasks_and_actors_import_packages_that_only_they_have(tmp_path: Path) -> None:
    def version():
        import importlib

        return importlib.import_module("of_the_test").version

    class Knows:
        def version(self):
            return version()

    first, second = (RuntimeEnv(package_requirements=[wheel(tmp_path, n)]) for n in (1, 2))
    with JobContext(resources={"CPU": 4}) as context:
        tasks = [
            context.create_task(version, options=TaskOptions(runtime_env=each))
            for each in (first, second, first)
        ]
        assert context.get(tasks, timeout=100) == [1, 2, 1]
        actor = context.create_actor(Knows, options=ActorOptions(runtime_env=second))
        assert context.get(actor.version(), timeout=100) == 2
        with pytest.raises(ModuleNotFoundError):
            context.get(context.create_task(version))


def test_packages_that_cannot_be_installed_fail_their_tasks_with_the_reason(
    tmp_path: Path,
) -> None:
    missing = RuntimeEnv(package_requirements=[str(tmp_path / "missing-1-py3-none-any.whl")])
    with JobContext(resources={"CPU": 2}) as context:
        for _ in range(2):
            ref = context.create_task(int, options=TaskOptions(runtime_env=missing))
            with pytest.raises(PackagesError, match="missing-1"):
                context.get(ref, timeout=100)
        assert context.get(context.create_task(int)) == 0
