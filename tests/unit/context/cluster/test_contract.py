"""The contract of cluster contexts: on this machine, and through a portal's REST."""

from __future__ import annotations

import pytest

from monarch_client.context import LocalClusterContext
from tests.cluster_contract import ClusterContract
from tests.unit.context.cluster.portal_of_processes import PortalOfProcesses

pytestmark = pytest.mark.feature("S4.9")


class TestLocal(ClusterContract):
    @pytest.fixture
    def cluster(self):
        with LocalClusterContext() as cluster:
            yield cluster


class TestPortal(ClusterContract):
    @pytest.fixture
    def cluster(self):
        with LocalClusterContext() as processes:
            yield PortalOfProcesses(processes).context()
