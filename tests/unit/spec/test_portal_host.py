"""What a member writes reaches neither files nor shells of the hosts of the portal and SkyPilot."""

from __future__ import annotations

import pytest

from monarch_client.spec import JobSpec
from tests.unit.spec.specs import errors_of, spec

# SkyPilot's client takes a URL without a bucket for a path of its own machine, and uploads that.
NO_BUCKETS = [
    "s3://?/../../../../../../etc/passwd",
    "s3://#/../../../../../../etc/passwd",
    "gs://.?/../../../etc/passwd",
    "s3://bucket/../../../../../../etc/passwd",
    "https://account.blob.core.windows.net/../../etc/passwd",
    "s3://bucket/..",
    "https://?.blob.core.windows.net/../../etc/passwd",
    "file:///etc/passwd",
]
# SkyPilot's server asks for buckets by lines that it gives to a shell.
COMMANDS = ["$(id)", "`id`", ";id", "|id", "&id", "'", '"', ">x", "(id)", "\\", "*", "${SECRET}"]
LINE_ENDS = ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"]


@pytest.mark.feature("S2.1")
@pytest.mark.parametrize("source", NO_BUCKETS)
def test_a_bucket_that_is_none_does_not_read_the_portals_files(source):
    for mount in (source, {"source": source}, {"source": [source]}):
        assert {each.code for each in errors_of(spec(file_mounts={"/x": mount}), for_server=True)}


@pytest.mark.parametrize("text", COMMANDS)
def test_no_part_of_a_bucket_is_a_command(text):
    for mount in (
        f"gs://bucket/{text}",
        f"gs://bucket{text}",
        f"https://account.blob.core.windows.net/{text}",
        {"source": [f"gs://bucket/{text}"]},
        {"name": f"bucket{text}"},
    ):
        assert errors_of(spec(file_mounts={"/x": mount}), for_server=True)


def test_buckets_come_one_by_one():
    """A list is one of paths to SkyPilot's client, whatever the paths look like."""
    assert errors_of(spec(file_mounts={"/x": {"source": ["s3://bucket"]}}))


def test_no_variable_is_filled_in_where_files_come_from_or_go_to():
    """SkyPilot puts values into the text of all mounts, where one with a quote adds a mount."""
    for key in ("file_mounts", "volumes"):
        for target in ("/x/$SECRET", "/${SECRET}"):
            source = {"file_mounts": "s3://bucket", "volumes": "scratch"}[key]
            assert [each.code for each in errors_of(spec(**{key: {target: source}}))]


@pytest.mark.parametrize("end", LINE_ENDS)
@pytest.mark.parametrize("key", ["image_id", "instance_type", "region", "zone", "infra"])
def test_no_resource_begins_a_line_in_the_templates_of_skypilot(key, end):
    text = f"aws/x{end}auth: {{ssh_proxy_command: id}}"
    for resources in ({key: text}, {"any_of": [{key: text}]}):
        assert errors_of(spec(resources=resources))


@pytest.mark.parametrize("end", LINE_ENDS)
def test_neither_do_images_of_regions_and_details_of_tpus(end):
    assert errors_of(spec(resources={"image_id": {"us-east-1": f"ami-1{end}auth: x"}}))
    for key in ("runtime_version", "tpu_name"):
        assert errors_of(spec(resources={"accelerator_args": {key: f"x{end}auth: y"}}))


@pytest.mark.parametrize(
    "image",
    [
        "docker:python:3.11",
        "docker:nvcr.io#nvidia/pytorch:23.10-py3",
        "docker:registry.example:5000/team/image@sha256:" + "0" * 64,
        "docker:/shared/images/torch+cuda.sqsh",
        "ami-0123456789abcdef0",
        "skypilot:gpu-ubuntu-2204",
        "projects/deeplearning-platform-release/global/images/common-cu121",
        "microsoft-dsvm:ubuntu-2004:2004-gen2:21.11.04",
    ],
)
def test_images_are_named_as_registries_and_clouds_name_them(image):
    assert JobSpec.parse(spec(resources={"image_id": image})).resources["image_id"] == image


@pytest.mark.parametrize(
    "source",
    [
        "s3://bucket.with-dots_1/a/b+c",
        "gs://bucket/path=1/x@2,y%20z",
        "cos://us-south/bucket",
        "oci://bucket@us-ashburn-1/x",
        "hf://datasets/org/name@main",
        "s3://bucket/a..b/..c/d..",
        "https://account.blob.core.windows.net/container/path",
    ],
)
def test_buckets_are_named_as_clouds_name_them(source):
    assert JobSpec.parse(spec(file_mounts={"/x": source})).file_mounts == {"/x": source}
