"""Variables of `envs` in sources and paths of files, as SkyPilot fills them in."""

from __future__ import annotations

import json

import pytest

from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec import JobSpec

pytestmark = pytest.mark.feature("S2.10")
# From public task files: bucket, path on the nodes, a bucket's name, a folder of one's own.
PUBLIC = """
run: ls
envs: {BUCKET: my-data, SIZE: 7, OUTPUT: out-1, SOURCE: ./src, REPO: org/code}
workdir: {url: "https://github.com/${REPO}.git"}
file_mounts:
  /data/llama-${SIZE}b: s3://$BUCKET/llama-${SIZE}b
  /output: {name: $OUTPUT, mode: MOUNT}
  ~/code: $SOURCE
volumes: {/mnt/$OUTPUT: $BUCKET}
"""


def test_variables_of_envs_are_filled_in_where_skypilot_does() -> None:
    spec = JobSpec.parse(PUBLIC)
    assert spec.file_mounts == {
        "/data/llama-7b": "s3://my-data/llama-7b",
        "/output": {"name": "out-1", "mode": "MOUNT"},
        "~/code": "./src",
    }
    assert spec.workdir == {"url": "https://github.com/org/code.git"}
    assert spec.passed_on["volumes"] == {"/mnt/out-1": "my-data"}
    assert JobSpec.parse(spec.to_dict()).file_mounts == spec.file_mounts


def test_a_variable_of_the_command_line_is_filled_in_as_well() -> None:
    text = "run: ls\nenvs: {BUCKET: null}\nfile_mounts: {/data: 's3://$BUCKET'}\n"
    assert JobSpec.parse(text, envs={"BUCKET": "mine"}).file_mounts == {"/data": "s3://mine"}


def errors_of(**keys: object) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse({"run": "ls", **keys}, for_server=True)
    return [(each.path, each.code) for each in caught.value.errors]


def test_what_a_variable_holds_is_checked_as_if_it_were_written_there() -> None:
    for value in ("s3://x/$(id)", "/etc/passwd", "s3://x/../y", "$OTHER"):
        (error,) = errors_of(envs={"V": value}, file_mounts={"/data": "$V"})
        assert error[0] == "file_mounts./data"
    assert errors_of(envs={"V": "../x"}, file_mounts={"/$V": "s3://x"})
    assert errors_of(envs={"V": "me:hush@host"}, workdir={"url": "https://$V/r"})


def test_two_paths_that_become_one_are_refused() -> None:
    mounts = {"/data": "s3://a", "/$V": "s3://b"}
    assert errors_of(envs={"V": "data"}, file_mounts=mounts) == [("file_mounts", "duplicate_key")]


def test_a_long_value_named_often_is_refused_before_it_is_filled_in() -> None:
    source = json.dumps({"run": "", "envs": {"V": "x" * 30_000}, "workdir": "$V" * 60_000})
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse(source)
    assert "too_large" in {each.code for each in caught.value.errors}
