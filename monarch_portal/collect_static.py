"""Collect the static files of pages: compressed, and named after their content.

    python -m monarch_portal.collect_static

does nothing where the present sources are collected already. A browser keeps such a file for ever.
"""

from __future__ import annotations

import os
import shutil

import django
from whitenoise.storage import CompressedManifestStaticFilesStorage

from monarch_portal.static_files import collected, folder

# Files of packages that no page uses.
UNUSED = ["redoc", "rest_framework", "ext", "htmx-4*", "htmax-*", "htmx-2.js"]
KEPT_VERSIONS = 4


class HashedStaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Files named after their content; modules of JavaScript import each other by these names."""

    support_js_module_import_aggregation = True


def collect() -> None:
    """Collect the files, unless that is done; forget versions that were collected long ago."""
    if collected():
        return
    django.setup()
    # It reads the settings.
    from django.contrib.staticfiles.finders import get_finders  # noqa: PLC0415

    unfinished = folder().with_name(f"{folder().name}.{os.getpid()}")
    storage = HashedStaticFiles(location=str(unfinished), base_url="/static/")
    found = {}
    for finder in get_finders():
        for path, source in finder.list(UNUSED):
            with source.open(path) as content:
                storage.save(path, content)
            found[path] = (storage, path)
    for _, _, outcome in storage.post_process(found):
        if isinstance(outcome, Exception):
            raise outcome
    try:
        unfinished.rename(folder())
    except OSError:
        # Another portal of this checkout was faster.
        shutil.rmtree(unfinished)
    _forget_old()


def _forget_old() -> None:
    versions = sorted(folder().parent.iterdir(), key=lambda each: each.stat().st_mtime)
    for each in versions[:-KEPT_VERSIONS]:
        shutil.rmtree(each, ignore_errors=True)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")
    collect()
