"""Names of clouds: misspelt ones are told at once, those that a plugin may have brought are not."""

from __future__ import annotations

import pytest

from monarch_client.spec import InvalidSpecErrors, JobSpec


def test_a_cloud_that_a_plugin_may_have_brought_is_left_to_skypilot() -> None:
    spec = JobSpec.parse({"run": "true", "resources": {"infra": "ourcloud/somewhere"}})
    assert spec.resources["infra"] == "ourcloud/somewhere"


@pytest.mark.parametrize(("written", "meant"), [("awss", "aws"), ("kubernets", "kubernetes")])
def test_a_misspelt_cloud_is_told_with_the_one_that_was_meant(written: str, meant: str) -> None:
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse({"run": "true", "resources": {"infra": written}})
    assert [error.suggestion for error in caught.value.errors] == [meant]
