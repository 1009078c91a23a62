"""The list of modules that a page's browser requests at once."""

from __future__ import annotations

import re

from jobs.web.base.script_modules import SOURCES, imported_by


def test_a_script_brings_what_its_imports_import_each_once():
    modules = imported_by("jobs/js/log.js")
    assert "jobs/js/log/ansi.js" in modules  # by way of log/line.js
    assert len(modules) == len(set(modules))


def test_every_import_of_every_module_is_found_but_those_of_a_first_use():
    # An import that is written in another way is not preloaded, and gets no hashed name.
    at_first_use = re.compile(r"""\bimport\("[^"]+"\)""")
    for module in (SOURCES / "jobs" / "js").rglob("*.js"):
        text = at_first_use.sub("", module.read_text())
        named = set(re.findall(r"""["'](\.{1,2}/[^"']+\.js)["']""", text))
        found = imported_by(str(module.relative_to(SOURCES)))
        folder = module.parent
        assert {(folder / name).resolve() for name in named} <= {
            (SOURCES / name).resolve() for name in found
        }, module
