"""Names of clouds: misspelled ones are reported at once, those of possible plugins are not."""

from __future__ import annotations

import pytest

from monarch_client.spec import InvalidSpecErrors, JobSpec


def test_a_cloud_that_a_plugin_may_have_brought_is_left_to_skypilot() -> None:
    spec = JobSpec.parse({"run": "true", "resources": {"infra": "ourcloud/somewhere"}})
    assert spec.resources["infra"] == "ourcloud/somewhere"


@pytest.mark.parametrize(("written", "meant"), [("awss", "aws"), ("kubernets", "kubernetes")])
def test_a_misspelled_cloud_is_reported_with_the_intended_one(written: str, meant: str) -> None:
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse({"run": "true", "resources": {"infra": written}})
    assert [error.suggestion for error in caught.value.errors] == [meant]


@pytest.mark.parametrize("target", ["~/.mportal", "~/.mportal/7", "~/./.mportal/x"])
def test_nothing_is_put_over_the_folder_of_the_runner(target: str) -> None:
    spec = {"run": "true", "file_mounts": {target: f"upload:{'0' * 64}"}}
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse(spec)
    assert "belongs to the job's runner" in caught.value.errors[0].message


def test_a_name_that_only_begins_like_the_folder_of_the_runner_is_free() -> None:
    source = f"upload:{'0' * 64}"
    spec = JobSpec.parse({"run": "true", "file_mounts": {"~/.mportal-data": source}})
    assert spec.to_dict()["file_mounts"] == {"~/.mportal-data": source}


def test_the_url_of_a_repository_as_workdir_is_refused_with_the_mapping_to_write() -> None:
    with pytest.raises(InvalidSpecErrors, match=r"\{url: https://x\.org/a\.git, ref: v1\}"):
        JobSpec.parse("run: x\nworkdir: https://x.org/a.git@v1\n")
