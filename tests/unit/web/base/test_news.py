"""The news: two releases of the changelog, without what users do not see."""

from __future__ import annotations

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
