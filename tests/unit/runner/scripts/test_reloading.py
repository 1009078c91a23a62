"""Modules of changed files are dropped, with those that use them, and no other."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from monarch_client.runner.scripts.mportal_runtime.reloading import drop_modules


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder of modules that programs import."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    (tmp_path / "sy_pkg").mkdir()
    for name, text in {
        "sy_base.py": "VALUE = 1\nclass Base: pass\ndef f(): return VALUE\n",
        "sy_by_class.py": "from sy_base import Base\n",
        "sy_by_function.py": "from sy_base import f\n",
        "sy_by_instance.py": "import sy_base\nit = sy_base.Base()\ndel sy_base\n",
        "sy_by_module.py": "import sy_base as other\n",
        "sy_by_both.py": "import sy_by_module\n",
        "sy_by_value.py": "from sy_base import VALUE\n",
        "sy_alone.py": "import os\n",
        "sy_pkg/__init__.py": "",
        "sy_pkg/inner.py": "VALUE = 1\n",
        "sy_pkg/other.py": "VALUE = 1\n",
        "sy_pkg/near.py": "from . import inner\n",
        "sy_pkg/far.py": "from .inner import VALUE\n",
    }.items():
        (tmp_path / name).write_text(text)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_changed_module_goes_with_all_that_use_it(project):
    users = [
        "sy_by_value",
        "sy_by_class",
        "sy_by_function",
        "sy_by_instance",
        "sy_by_module",
        "sy_by_both",
    ]
    for name in [*users, "sy_alone"]:
        importlib.import_module(name)
    alone = sys.modules["sy_alone"]
    (project / "sy_base.py").write_text("VALUE = 22\nclass Base: pass\ndef f(): return VALUE\n")
    assert drop_modules(str(project), ["sy_base.py", "README"]) == sorted(["sy_base", *users])
    assert importlib.import_module("sy_by_function").f() == 22
    assert sys.modules["sy_alone"] is alone


def test_a_module_of_a_package_goes_alone_and_comes_back_into_it(project):
    package = importlib.import_module("sy_pkg")
    importlib.import_module("sy_pkg.other")
    importlib.import_module("sy_pkg.near")
    importlib.import_module("sy_pkg.far")
    (project / "sy_pkg" / "inner.py").write_text("VALUE = 22\n")
    users = ["sy_pkg.far", "sy_pkg.inner", "sy_pkg.near"]
    assert drop_modules(str(project), ["sy_pkg/inner.py"]) == users
    assert not hasattr(package, "inner")
    assert importlib.import_module("sy_pkg.inner").VALUE == 22
    assert importlib.import_module("sy_pkg") is package


def test_a_package_goes_with_all_that_is_in_it(project):
    importlib.import_module("sy_pkg.inner")
    importlib.import_module("sy_pkg.other")
    dropped = drop_modules(str(project), ["sy_pkg/__init__.py"])
    assert dropped == ["sy_pkg", "sy_pkg.inner", "sy_pkg.other"]


def test_a_deleted_module_cannot_be_imported_any_more_and_a_new_one_can(project):
    importlib.import_module("sy_alone")
    (project / "sy_alone.py").unlink()
    (project / "sy_new.py").write_text("VALUE = 1\n")
    assert drop_modules(str(project), ["sy_alone.py", "sy_new.py"]) == ["sy_alone"]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("sy_alone")
    assert importlib.import_module("sy_new").VALUE == 1
