"""A context with real processes, which the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monarch_client.context import JobContext, clear_job_context

RESOURCES = {"CPU": 4, "GPU": 2, "memory": 16 * 2**30, "head_node": 1}


@pytest.fixture(scope="module")
def context() -> Iterator[JobContext]:
    with JobContext(resources=RESOURCES) as made:
        yield made
    clear_job_context()
