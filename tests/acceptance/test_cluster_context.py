"""The contract of cluster contexts on a whole portal."""

from __future__ import annotations

import uuid

import pytest

from monarch_client.context import PortalClusterContext, TpuRunConfig
from monarch_client.context.errors import NoTpuError
from monarch_client.rest import PortalClient
from tests.cluster_contract import ClusterContract


class TestPortal(ClusterContract):
    timeout_s = 120.0

    @pytest.fixture
    def cluster(self, portal):
        name = f"context-{uuid.uuid4().hex[:8]}"
        with PortalClient(portal.url, portal.token) as client:
            client.make_project(name)
            yield PortalClusterContext(client, name)

    @pytest.mark.feature("S4.10")
    def test_a_portal_without_tpus_is_a_clear_error(self, cluster):
        with pytest.raises(NoTpuError, match="tpu-v4-8"):
            cluster.run_on_tpu(lambda context: 1, TpuRunConfig("v4-8"))
