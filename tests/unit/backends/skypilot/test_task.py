"""The task that SkyPilot is given: its client may send files of the portal's host with it."""

from __future__ import annotations

import pytest

from jobs.backends.base import LaunchRequest
from jobs.backends.skypilot.task import described, task_for
from jobs.errors import BackendError
from monarch_client.runner.programs.hidden_values import revealed

UPLOAD = "upload:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "mount",
    [
        "/etc/passwd",
        "s3://?/../../etc/passwd",
        {"source": "~/.ssh", "name": "bucket"},
        {"source": ["s3://bucket", "s3://other"]},
        {"source": ["s3://bucket/../../etc"]},
        "s3://bucket/../../etc",
        "s3://bucket/${SECRET}",
        {"name": "$SECRET"},
    ],
)
def test_a_specification_of_an_older_version_does_not_send_files_of_the_host(mount):
    with pytest.raises(BackendError):
        described({"file_mounts": {"/data": mount}})


def test_a_value_of_a_secret_is_filled_into_no_mount():
    for key, value in (("file_mounts", "s3://bucket"), ("volumes", "scratch")):
        with pytest.raises(BackendError):
            described({key: {"/$SECRET": value}})


def test_buckets_and_volumes_are_skypilots_business_and_uploads_the_runners():
    spec = {
        "file_mounts": {
            "/a": "s3://bucket/x",
            "/b": {"source": "gs://bucket", "mode": "MOUNT"},
            "/c": {"name": "bucket"},
            "~/d": UPLOAD,
        },
        "volumes": {"/v": "scratch"},
    }
    task = described(spec)
    assert set(task["file_mounts"]) == {"/a", "/b", "/c"}
    assert task["volumes"] == {"/v": "scratch"}


def test_no_value_of_a_secret_is_in_what_skypilot_makes_arguments_of():
    given = {"KEY": "a long secret", "SKYPILOT_DOCKER_PASSWORD": "of the registry"}
    request = LaunchRequest("mp-1-1", "rl", 1, "job", 1, 1, {}, 1, "", "token", secrets=given)
    task = task_for(request, "/staged")
    assert "a long secret" not in str(task)
    # SkyPilot signs in at the registry itself.
    assert task["secrets"]["SKYPILOT_DOCKER_PASSWORD"] == "of the registry"
    assert revealed(task["secrets"], request.token) == given
