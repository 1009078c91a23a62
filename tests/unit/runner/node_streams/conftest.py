"""The certificates of one attempt, made once for each module of tests."""

from __future__ import annotations

import pytest

from tests.unit.runner.node_streams.certificates import Certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))
