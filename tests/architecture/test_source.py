"""A rule over no files holds always: each kind of file that the rules inspect must be found."""

from __future__ import annotations

from tests.architecture.source import PACKAGES, ROOT, python_files, repository_files

# (folder, suffix): what rules look for in the repository's files.
INSPECTED = (
    *((package, ".py") for package in (*PACKAGES, "bench", "tests", "examples")),
    ("templates", ".html"),
    ("docs", ".md"),
    ("jobs", ".js"),
)


def test_the_rules_find_files_of_every_kind_to_inspect() -> None:
    found = {(path.relative_to(ROOT).parts[0], path.suffix) for path in repository_files()}
    missing = [
        f"{folder}/**/*{suffix}" for folder, suffix in INSPECTED if (folder, suffix) not in found
    ]
    assert not missing, "\n".join(missing)


def test_the_rules_see_the_product_and_no_migrations() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in python_files()}
    assert {
        "jobs/lifecycle.py",
        "monarch_client/cli/main.py",
        "monarch_portal/settings.py",
    } <= names
    assert not [name for name in names if "/migrations/" in name]
