"""Errors of specifications: their codes, lines and messages."""

from __future__ import annotations

import pytest

from monarch_client.spec import JobSpec, SpecError
from tests.each_case import check_each
from tests.unit.spec.specs import UPLOAD, errors_of, nested, only_error, portal, spec

MANY = """\
name: ppo
num_nodes: two
resuorces: {accelerators: H100:8}
resources:
  infra: slrum/main
  accelerators: H100:x8
portal:
  meshes:
    trainers: 0
    class: 1
  max_duration: soon
name: again
"""


def test_all_errors_come_at_once_in_the_order_of_the_file():
    found = [(error.line, error.code, error.path) for error in errors_of(MANY)]
    assert found == [
        (1, "missing", "run"),
        (2, "wrong_type", "num_nodes"),
        (3, "unknown_key", "resuorces"),
        (5, "bad_value", "resources.infra"),
        (6, "bad_value", "resources.accelerators"),
        (9, "bad_value", "portal.meshes.trainers"),
        (10, "bad_value", "portal.meshes.class"),
        (11, "bad_value", "portal.max_duration"),
        (12, "duplicate_key", "name"),
    ]


def test_a_message_says_what_is_wanted_and_what_was_given():
    error = only_error("run: x\nnum_nodes: two\n")
    assert error == SpecError(
        "num_nodes", 2, "wrong_type",
        "num_nodes must be a whole number from 1 to 10000, not 'two'.",
        column=12, end_column=15,
    )  # fmt: skip
    assert str(error).startswith("line 2: num_nodes")


def test_an_object_has_paths_but_no_lines():
    error = only_error(portal(meshes={"trainers": "many"}))
    assert (error.path, error.line, error.code) == ("portal.meshes.trainers", None, "wrong_type")


@pytest.mark.parametrize(
    ("source", "path", "suggestion"),
    [
        (spec(stup="x"), "stup", "setup"),
        (spec(accelerators="A100:8"), "accelerators", "resources.accelerators"),
        (spec(meshes={"a": 1}), "meshes", "portal.meshes"),
        (portal(mehses={"a": 1}), "portal.mehses", "meshes"),
        (nested("resources.use_spott", True), "resources.use_spott", "use_spot"),
        (nested("resources.any_of", [{"zome": "a"}]), "resources.any_of[0].zome", "zone"),
        (spec(qqqq=1), "qqqq", None),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(source, path, suggestion):
    error = only_error(source)
    assert (error.code, error.path, error.suggestion) == ("unknown_key", path, suggestion)
    assert suggestion is None or suggestion in error.message


@pytest.mark.parametrize("name", ["2nd", "_private", "with-dash", "ünder", "", "class", "None"])
def test_a_mesh_needs_a_name_that_a_driver_can_write(name):
    assert only_error(portal(meshes={name: 1})).code == "bad_value"


@pytest.mark.parametrize(
    "name", ["1ST", "WITH-DASH", "", "A=B", "MPORTAL_TOKEN", "SKYPILOT_NODE_IPS"]
)
def test_an_environment_variable_needs_a_name_of_its_own(name):
    assert only_error(spec(envs={name: "x"})).code == "bad_value"


def test_an_environment_variable_without_a_value_is_refused():
    error = only_error("run: x\nenvs:\n  TOKEN:\n")
    assert (error.code, error.path, error.line) == ("wrong_type", "envs.TOKEN", 3)
    assert "give it with `-e TOKEN=...`" in error.message


def test_num_nodes_must_agree_with_the_meshes():
    source = portal(meshes={"trainers": 2, "generators": 1}) | {"num_nodes": 4}
    error = only_error(source)
    assert (error.code, error.path) == ("conflict", "num_nodes")
    assert JobSpec.parse(source | {"num_nodes": 3}).num_nodes == 3


def test_meshes_of_more_nodes_than_a_job_may_have_are_refused():
    assert only_error(portal(meshes={"a": 9000, "b": 9000})).path == "portal.meshes"


@pytest.mark.parametrize("order", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_mesh_order_names_each_mesh_once(order):
    assert only_error(portal(meshes={"a": 1, "b": 1}, mesh_order=order)).code == "conflict"


def test_infra_does_not_go_with_cloud_region_or_zone():
    found = errors_of(spec(resources={"infra": "aws", "cloud": "aws", "zone": "a"}))
    assert [error.path for error in found] == ["resources.cloud", "resources.zone"]


# Keys and values that they cannot have.
OUT_OF_FORM_OR_RANGE = [
    ("name", "two words"), ("name", ""), ("name", "x" * 101), ("run", "x" * 200_000),
    ("num_nodes", 0), ("num_nodes", 1.5), ("num_nodes", True), ("portal.port", 80),
    ("portal.priority", 101), ("portal.queue", "Not A Slug"), ("portal.max_duration", "0s"),
    ("portal.max_duration", "400d"), ("portal.retry.max_attempts", 0),
    ("resources.accelerators", "A100:0"), ("resources.accelerators", "A100:-1"),
    ("resources.infra", "aws us"), ("resources.infra", ""), ("resources.cpus", "many"),
    ("resources.memory", "-1"), ("resources.disk_size", "big"), ("resources.ports", 0),
    ("resources.ports", [70_000]), ("resources.max_hourly_cost", 0),
    ("resources.any_of", []), ("file_mounts", {"/a/../b": UPLOAD}),
    ("file_mounts", {"/a": "ftp://host/x"}), ("file_mounts", {"/a": "upload:123"}),
    ("file_mounts", {"/a": {"mode": "MOUNT"}}), ("file_mounts", {"/a": {"source": "./x"}}),
    ("workdir", "s3://bucket"), ("workdir", ""), ("workdir", {"ref": "main"}),
    ("workdir", {"url": "file:///etc"}), ("workdir", {"url": "https://h/r", "ref": "-x"}),
    ("workdir", {"url": "ssh://-oProxyCommand=touch%20x/r"}),
    ("workdir", {"url": "ssh://git@-oProxyCommand=x/r"}), ("workdir", {"url": "ssh://-u@host/r"}),
    ("workdir", {"url": "-oProxyCommand=x@host:r"}), ("workdir", {"url": "git@-host:r"}),
    ("workdir", {"url": "git@host:-oProxyCommand=x"}), ("workdir", {"url": "https:///r"}),
]  # fmt: skip


def test_values_out_of_form_or_range_are_refused():
    def check(path: str, value: object) -> None:
        assert only_error(nested(path, value)).path.startswith(path)

    check_each(OUT_OF_FORM_OR_RANGE, check)


def test_folders_of_the_submitter_are_refused_on_the_server_with_what_to_do():
    source = f"run: x\nworkdir: .\nfile_mounts:\n  /a: ../a\n  /b: s3://b\n  /c: {UPLOAD}\n"
    found = JobSpec.parse(source).server_errors()
    assert [(e.path, e.line, e.code) for e in found] == [
        ("workdir", 2, "local_path"),
        ("file_mounts./a", 4, "local_path"),
    ]
    assert "mportal submit" in found[0].message
    assert errors_of(source, for_server=True) == found


@pytest.mark.feature("S2.1")
@pytest.mark.parametrize("path", ["/etc/passwd", "~/.ssh", ".", "..", "${HOME}", "file.txt", "//x"])
def test_no_spelling_of_a_path_reaches_the_server(path):
    for source in (spec(workdir=path), spec(file_mounts={"/x": path})):
        assert only_error(source, for_server=True).code == "local_path"


def test_a_git_repository_without_a_password_is_a_workdir_of_the_server_too():
    for url in ("https://github.com/org/repo", "ssh://git@host/repo", "git@github.com:org/repo"):
        parsed = JobSpec.parse(spec(workdir={"url": url, "ref": "main"}))
        assert parsed.server_errors() == []
    for url in ("https://hush@host/repo", "https://me:hush@host/r", "ssh://me:hush@host/r"):
        error = only_error(spec(workdir={"url": url}))
        assert (error.path, error.code) == ("workdir.url", "bad_value")
        assert "GIT_TOKEN" in error.message
        assert "hush" not in error.message


def test_what_skypilot_would_fill_in_or_upload_is_refused_with_the_reason():
    error = only_error(spec(file_mounts={"/data": "s3://${BUCKET}/x"}))
    assert "names a variable that envs does not set" in error.message
    error = only_error(spec(file_mounts={"/data": {"source": "s3://$BUCKET"}}))
    assert "names a variable that envs does not set" in error.message
    error = only_error(spec(file_mounts={"/data": {"name": "mine", "source": "./data"}}))
    assert (error.code, "fills no bucket with your folder" in error.message) == ("local_path", True)


def test_errors_stop_at_a_hundred():
    assert len(errors_of(spec(**{f"wrong{i}": i for i in range(5000)}))) == 100


def test_a_text_that_yaml_takes_for_something_else_is_to_be_written_in_quotes():
    def check(text: str, path: str, written: str) -> None:
        (error,) = [each for each in errors_of(text) if each.path == path]
        assert error.code == "wrong_type"
        assert error.message.endswith(f'not {written}. Write it in quotes: "{written}".')

    check_each(
        [
            ("name: on\nrun: x", "name", "on"),
            ("name: 123\nrun: x", "name", "123"),
            ("run: 1.5", "run", "1.5"),
            ("run: x\nportal: {queue: no}", "portal.queue", "no"),
            ("run: x\nportal: {depends_on: [yes]}", "portal.depends_on[0]", "yes"),
        ],
        check,
    )


def test_no_quotes_are_named_where_they_would_not_help():
    (error,) = errors_of("run: x\nresources: {cpus: true}")
    assert "quotes" not in error.message
