"""The news: the highlights of two releases, else what users see of them."""

from __future__ import annotations

from jobs.web.base.documents import shipped
from jobs.web.base.news import for_users

CHANGELOG = """# Changelog

## [Unreleased]

### Added

#### Jobs

- A job has labels.

#### Operation

- A make target.

### Fixed

#### Jobs

- A job ends.

## [0.2.0]

### Added

#### Development

- A linter.

#### Logs

- Logs fold.

## [0.1.0]

### Added

#### Jobs

- Jobs.
"""


def test_the_news_are_those_of_two_releases_without_operation_and_development() -> None:
    shown = for_users(CHANGELOG)
    for text in ("Unreleased", "### Fixed", "A job has labels", "A job ends", "0.2.0", "Logs fold"):
        assert text in shown
    for text in ("make target", "linter", "Operation", "Development", "- Jobs."):
        assert text not in shown


def test_the_news_of_a_release_with_highlights_are_these_alone() -> None:
    highlights = "## [Unreleased]\n\n### Highlights\n\n- A shell on any node.\n"
    shown = for_users(CHANGELOG.replace("## [Unreleased]\n", highlights))
    assert "A shell on any node" in shown and "Logs fold" in shown
    assert "A job has labels" not in shown and "### Fixed" not in shown


def test_the_changelog_has_at_most_a_dozen_highlights() -> None:
    text = for_users(shipped()["CHANGELOG.md"].read_text(encoding="utf-8"))
    assert 5 <= text.count("\n- ") <= 12
