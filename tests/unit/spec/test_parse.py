"""The meaning of a specification once it is parsed."""

from __future__ import annotations

import pytest

from monarch_client.spec import InvalidSpecErrors, JobSpec, Retry
from tests.unit.spec.specs import UPLOAD, nested, only_error, portal, spec

WHOLE = f"""\
name: ppo
workdir: {UPLOAD}
resources: {{accelerators: H100:8, infra: slurm/main}}
setup: pip install -r requirements.txt
run: python train.py
envs: {{LEARNING_RATE: 3e-4, VERSION: 1.10, DEBUG: yes, EMPTY: "", ID: 007}}
file_mounts:
  /data: s3://datasets/imagenet
  ~/model: {UPLOAD}
portal:
  project: rl
  meshes: {{trainers: 2, generators: 1}}
  priority: 80
  max_duration: 1h30m
  retry: {{max_attempts: 3}}
"""


def test_a_monarch_job_has_as_many_nodes_as_its_meshes():
    parsed = JobSpec.parse(WHOLE)
    assert parsed.num_nodes == 3
    assert parsed.kind == "monarch"
    assert parsed.is_monarch
    assert list(parsed.portal.meshes) == ["trainers", "generators"]


def test_a_job_without_meshes_is_plain_and_has_one_node():
    parsed = JobSpec.parse("run: hostname")
    assert (parsed.kind, parsed.num_nodes, parsed.name) == ("plain", 1, "job")
    assert (parsed.setup, parsed.workdir, parsed.references()) == (None, None, [])


def test_the_portal_block_is_complete_with_its_defaults():
    block = JobSpec.parse(WHOLE).portal
    assert (block.project, block.queue, block.priority, block.port) == ("rl", "default", 80, 22222)
    assert block.retry == Retry(max_attempts=3, max_recoveries=5)
    assert block.max_duration_s == 5400


@pytest.mark.feature("P5.6")
@pytest.mark.parametrize(("written", "usd"), [(400, 400), ("0.5", None), (12.5, 12.5)])
def test_a_budget_is_a_number_of_dollars(written, usd):
    if usd is None:
        with pytest.raises(InvalidSpecErrors, match=r"portal\.budget_usd must be a number above 0"):
            JobSpec.parse(portal(budget_usd=written))
    else:
        block = JobSpec.parse(portal(budget_usd=written)).portal
        assert block.budget_usd == block.to_dict()["budget_usd"] == usd


@pytest.mark.feature("P5.6")
@pytest.mark.parametrize("written", [0, -1, 10_000_001, float("inf"), float("nan")])
def test_a_budget_that_makes_no_sense_is_refused(written):
    with pytest.raises(InvalidSpecErrors):
        JobSpec.parse(portal(budget_usd=written))


def test_environment_variables_stay_as_they_are_written():
    envs = JobSpec.parse(WHOLE).envs
    expected = {
        "LEARNING_RATE": "3e-4",
        "VERSION": "1.10",
        "DEBUG": "yes",
        "EMPTY": "",
        "ID": "007",
    }
    assert envs == expected


def test_numbers_and_flags_of_json_become_environment_text():
    envs = JobSpec.parse(spec(envs={"A": 1, "B": 0.5, "C": True})).envs
    assert envs == {"A": "1", "B": "0.5", "C": "true"}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90s", 90), ("90m", 5400), ("12h", 43_200), ("2d", 172_800), ("1w", 604_800), (600, 600),
     ("600", 600), ("1H30M", 5400)],
)  # fmt: skip
def test_durations_become_seconds(written, seconds):
    assert JobSpec.parse(portal(max_duration=written)).portal.max_duration_s == seconds


def test_a_key_without_a_value_counts_as_not_given():
    parsed = JobSpec.parse("run: hostname\nsetup:\nresources:\nportal:\n  retry:\n")
    assert (parsed.setup, parsed.resources, parsed.portal.retry) == (None, {}, Retry())


def test_uploads_are_found_with_their_targets():
    parsed = JobSpec.parse(WHOLE)
    assert parsed.upload_targets() == [("workdir", UPLOAD), ("~/model", UPLOAD)]
    assert parsed.upload_keys() == {"workdir": UPLOAD, "file_mounts.~/model": UPLOAD}
    assert parsed.references() == [UPLOAD]


def test_folders_of_the_submitter_are_found_by_the_key_that_names_them():
    parsed = JobSpec.parse(spec(workdir=".", file_mounts={"/data": "./data", "/b": "gs://b"}))
    assert parsed.local_sources() == {"workdir": ".", "file_mounts./data": "./data"}


def test_the_order_of_meshes_survives_a_database_that_sorts_keys():
    content = JobSpec.parse(portal(meshes={"zoo": 1, "b": 1, "apes": 2})).to_dict()
    content["portal"]["meshes"] = dict(sorted(content["portal"]["meshes"].items()))
    assert list(JobSpec.from_dict(content).portal.meshes) == ["zoo", "b", "apes"]
    assert list(JobSpec.parse(content).portal.meshes) == ["zoo", "b", "apes"]


def test_the_normal_form_is_a_copy():
    parsed = JobSpec.parse(WHOLE)
    parsed.to_dict()["envs"]["ADDED"] = "1"
    assert "ADDED" not in parsed.envs


@pytest.mark.feature("S2.1")
@pytest.mark.parametrize(
    "accelerators",
    [
        "A100:8",
        "H100",
        "tpu-v5p-8",
        "A100:0.5",
        {"A100": 8},
        ["A100:8", "H100:8"],
        "{A100:8, H100}",
    ],
)
def test_gpu_strings_are_accepted_as_skypilot_writes_them(accelerators):
    parsed = JobSpec.parse(spec(resources={"accelerators": accelerators, "use_spot": True}))
    assert parsed.resources["accelerators"] == accelerators


def test_a_yaml_set_of_accelerators_is_accepted():
    parsed = JobSpec.parse("run: x\nresources: {accelerators: {A100:8, H100:8}}")
    assert parsed.resources == {"accelerators": {"A100:8": None, "H100:8": None}}


@pytest.mark.feature("S2.1")
@pytest.mark.parametrize(
    "infra",
    ["local", "aws", "AWS/us-east-1", "gcp/us-central1/us-central1-a", "*/us-east-1", "*",
     "slurm/main/gpu", "k8s/arn:aws:eks:eu:12:cluster/main", "kubernetes", "ssh/pool"],
)  # fmt: skip
def test_every_way_to_name_a_place_is_accepted(infra):
    assert JobSpec.parse(nested("resources.infra", infra)).resources == {"infra": infra}


def test_words_are_accepted_in_any_case_and_kept_as_listed():
    mount = {"source": "s3://bucket", "mode": "mount_cached"}
    parsed = JobSpec.parse(spec(file_mounts={"/data": mount}))
    assert parsed.file_mounts["/data"] == {"source": "s3://bucket", "mode": "MOUNT_CACHED"}


def test_aliases_are_followed():
    parsed = JobSpec.parse("run: x\nresources:\n  any_of:\n    - &a {infra: aws}\n    - *a\n")
    assert parsed.resources == {"any_of": [{"infra": "aws"}, {"infra": "aws"}]}


@pytest.mark.feature("S2.1")
def test_gpus_are_accelerators_under_another_name():
    alternatives = [{"gpus": "H100:8"}, {"gpus": {"A100": 8}}]
    parsed = JobSpec.parse(spec(resources={"gpus": ["A100:8"], "any_of": alternatives}))
    assert parsed.resources == {
        "accelerators": ["A100:8"],
        "any_of": [{"accelerators": "H100:8"}, {"accelerators": {"A100": 8}}],
    }


def test_gpus_and_accelerators_together_are_refused():
    error = only_error("run: x\nresources:\n  gpus: H100\n  accelerators: A100\n")
    assert (error.path, error.line, error.code) == ("resources.gpus", 3, "conflict")


def test_a_wrong_count_of_gpus_is_found_on_its_line():
    error = only_error("run: x\nresources:\n  cpus: 4\n  gpus: {'H100:8': 2}\n")
    assert (error.path, error.line) == ("resources.accelerators.H100:8", 4)


@pytest.mark.parametrize(("name", "is_taken"), [
    ("VM.Standard.E4.Flex$_2_16", True), ("p4d.24xlarge", True), ("x$(id)", False), ("$_2", False),
])  # fmt: skip
def test_machine_types_hold_a_dollar_sign_only_as_oracles_do(name, is_taken):
    source = spec(resources={"instance_type": name})
    if is_taken:
        assert JobSpec.parse(source).resources["instance_type"] == name
    else:
        assert only_error(source).path == "resources.instance_type"


def test_variables_that_are_given_replace_those_of_the_text_and_fill_those_without_a_value():
    text = "run: x\nenvs:\n  TOKEN:\n  LR: 1e-3\n  KEPT: 1.10\n"
    parsed = JobSpec.parse(text, envs={"TOKEN": "t", "LR": "0010", "NEW": ""})
    assert parsed.envs == {"TOKEN": "t", "LR": "0010", "KEPT": "1.10", "NEW": ""}
    assert JobSpec.parse("run: x\nenvs:\n", envs={"A": "1"}).envs == {"A": "1"}


def test_variables_that_are_given_obey_the_rules_of_the_text():
    assert only_error("run: x\n", envs={"MPORTAL_TOKEN": "x"}).path == "envs.MPORTAL_TOKEN"
    assert only_error("run: x\nenvs: [A]\n", envs={"A": "1"}).path == "envs"


@pytest.mark.parametrize(("mount", "key"), [
    ({"type": "DATASET_RO"}, "type"),
    ({"config": {"mount_cached": {"transfers": 8}}}, "config.mount_cached"),
    ({"mode": "COPY", "config": {"mount": {"read_only": True}}}, "config.mount"),
])  # fmt: skip
def test_settings_of_another_way_to_mount_are_refused(mount, key):
    error = only_error(spec(file_mounts={"/data": {"source": "s3://bucket", **mount}}))
    assert (error.path, error.code) == (f"file_mounts./data.{key}", "conflict")
