"""Specifications reach neither files nor shells of the hosts of the portal and SkyPilot."""

from __future__ import annotations

import pytest

from monarch_client.spec import JobSpec
from tests.each_case import check_each
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
# SkyPilot's server requests buckets by command lines that it gives to a shell.
COMMANDS = ["$(id)", "`id`", ";id", "|id", "&id", "'", '"', ">x", "(id)", "\\", "*", "${SECRET}"]
LINE_ENDS = ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"]


@pytest.mark.feature("S2.1")
def test_a_bucket_that_is_none_does_not_read_the_portals_files():
    check_each(
        [
            mount
            for source in NO_BUCKETS
            for mount in (source, {"source": source}, {"source": [source]})
        ],
        mount_is_refused,
    )


def test_no_part_of_a_bucket_is_a_command():
    mounts: list[object] = []
    for text in COMMANDS:
        mounts += [f"gs://bucket/{text}", f"gs://bucket{text}"]
        mounts += [f"https://account.blob.core.windows.net/{text}"]
        mounts += [{"source": [f"gs://bucket/{text}"]}, {"name": f"bucket{text}"}]
    check_each(mounts, mount_is_refused)


def mount_is_refused(mount: object) -> None:
    assert errors_of(spec(file_mounts={"/x": mount}), for_server=True)


def test_buckets_come_one_by_one():
    # SkyPilot's client reads a list as paths, whatever the paths look like.
    assert errors_of(spec(file_mounts={"/x": {"source": ["s3://bucket"]}}))


def test_no_variable_is_filled_in_where_files_come_from_or_go_to():
    # SkyPilot puts values into the text of all mounts, where one with a quote adds a mount.
    for key in ("file_mounts", "volumes"):
        for target in ("/x/$SECRET", "/${SECRET}"):
            source = {"file_mounts": "s3://bucket", "volumes": "scratch"}[key]
            assert [each.code for each in errors_of(spec(**{key: {target: source}}))]


def resources_are_refused(resources: dict[str, object]) -> None:
    assert errors_of(spec(resources=resources))


def test_no_resource_begins_a_line_in_the_templates_of_skypilot():
    found: list[object] = []
    for key in ("image_id", "instance_type", "region", "zone", "infra"):
        texts = [f"aws/x{end}auth: {{ssh_proxy_command: id}}" for end in LINE_ENDS]
        found += [each for text in texts for each in ({key: text}, {"any_of": [{key: text}]})]
    check_each(found, resources_are_refused)


def test_neither_do_images_of_regions_and_details_of_tpus():
    found: list[object] = []
    for end in LINE_ENDS:
        found += [{"image_id": {"us-east-1": f"ami-1{end}auth: x"}}]
        for key in ("runtime_version", "tpu_name"):
            found += [{"accelerator_args": {key: f"x{end}auth: y"}}]
    check_each(found, resources_are_refused)


IMAGES = [
    "docker:python:3.11",
    "docker:nvcr.io#nvidia/pytorch:23.10-py3",
    "docker:registry.example:5000/team/image@sha256:" + "0" * 64,
    "docker:/shared/images/torch+cuda.sqsh",
    "ami-0123456789abcdef0",
    "skypilot:gpu-ubuntu-2204",
    "projects/deeplearning-platform-release/global/images/common-cu121",
    "microsoft-dsvm:ubuntu-2004:2004-gen2:21.11.04",
]


def test_images_are_named_as_registries_and_clouds_name_them():
    def check(image: str) -> None:
        assert JobSpec.parse(spec(resources={"image_id": image})).resources["image_id"] == image

    check_each(IMAGES, check)


BUCKETS = [
    "s3://bucket.with-dots_1/a/b+c",
    "gs://bucket/path=1/x@2,y%20z",
    "cos://us-south/bucket",
    "oci://bucket@us-ashburn-1/x",
    "hf://datasets/org/name@main",
    "s3://bucket/a..b/..c/d..",
    "https://account.blob.core.windows.net/container/path",
]


def test_buckets_are_named_as_clouds_name_them():
    def check(source: str) -> None:
        assert JobSpec.parse(spec(file_mounts={"/x": source})).file_mounts == {"/x": source}

    check_each(BUCKETS, check)
