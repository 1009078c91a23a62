"""Default values from the project files of a folder: portal.yaml, and pyproject.toml."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from monarch_client.spec import JobSpec
from monarch_client.spec.files import InvalidFileError
from monarch_client.spec.project_files import (
    defaults_of,
    project_defaults,
)
from tests.each_case import check_each

pytestmark = pytest.mark.feature("S2.8")
PYPROJECT = """
[project]
requires-python = ">=3.10"
dependencies = ["numpy>=1", 'torch; sys_platform == "linux"']

[tool.mportal]
name = "ppo"
portal.priority = 70
envs = { LR = "1e-3" }

[tool.mportal.resources]
accelerators = "H100:8"
infra = "slurm"
"""
PORTAL = "num_nodes: 2  # of two\nresources:\n  accelerators: A100:8\n"
BOTH = {"portal.yaml": PORTAL, "pyproject.toml": PYPROJECT}


def test_a_job_comes_first_then_portal_yaml_then_pyproject():
    own = "# mine\nrun: ./x\nresources:\n  # few\n  cpus: 4\nenvs: {A: 1.10}\n"
    text, used = defaults_of(BOTH).completed(own)
    spec = JobSpec.parse(text)
    assert (spec.name, spec.num_nodes, spec.run, spec.portal.priority) == ("ppo", 2, "./x", 70)
    assert spec.resources == {"accelerators": "A100:8", "infra": "slurm", "cpus": 4}
    assert spec.envs == {"A": "1.10", "LR": "1e-3"}
    assert text.startswith("# mine\nrun: ./x\nresources:\n") and "# few" in text
    assert {path: default.where for path, default in used.items()} == {
        "num_nodes": "portal.yaml:1",
        "resources.accelerators": "portal.yaml:3",
        "name": "pyproject.toml:7",
        "portal.priority": "pyproject.toml:8",
        "envs.LR": "pyproject.toml:9",
        "resources.infra": "pyproject.toml:13",
        "setup": "pyproject.toml:4",
        "workdir": "portal.yaml",
    }


def test_the_requirements_of_the_project_are_the_default_setup():
    setup = yaml.safe_load(defaults_of(BOTH).completed("")[0])["setup"]
    check, install = setup.split(" &&\n")
    assert install.endswith("""--no-input 'numpy>=1' 'torch; sys_platform == "linux"'""")
    assert subprocess.run(["bash", "-c", check], check=False).returncode == 0
    for wanted in (">=3.10,<3.99", "~=3.1", "!=2.*", ">3.9.1", "==3.*"):
        assert subprocess.run(["bash", "-c", _check_of(wanted)], check=False).returncode == 0
    for wanted in ("<3.10", ">=3.99", "~=2.7", "==3.8.*"):
        done = subprocess.run(
            ["bash", "-c", _check_of(wanted)], check=False, capture_output=True, text=True
        )
        assert done.returncode != 0
        assert f"pyproject.toml requires Python {wanted}, and this node has 3." in done.stderr
    own, _ = defaults_of(BOTH).completed('setup: ""\n')
    assert yaml.safe_load(own)["setup"] == ""


def _check_of(wanted: str) -> str:
    text = f"[project]\nrequires-python = '{wanted}'\n[tool.mportal]\n"
    setup: str = yaml.safe_load(defaults_of({"pyproject.toml": text}).completed("")[0])["setup"]
    return setup


def test_a_pyproject_without_the_portals_table_says_nothing(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = ['numpy']\n")
    assert project_defaults(tmp_path).values == {}
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = ['a']\n[tool.mportal]\n")
    assert set(project_defaults(tmp_path).values) == {("setup",), ("workdir",)}


def test_a_default_gives_way_to_another_word_for_the_same():
    def gives_way(default: str, own: str, left: str) -> None:
        text, _ = defaults_of({"portal.yaml": f"{default}\n"}).completed(f"run: x\n{own}\n")
        found = yaml.safe_load(text)
        assert {key: found.get(key) for key in yaml.safe_load(left)} == yaml.safe_load(left)

    check_each(
        [
            ("num_nodes: 4", "portal: {meshes: {a: 2}}", "num_nodes: null"),
            ("portal: {meshes: {a: 2}}", "num_nodes: 4", "portal: null"),
            ("resources: {cloud: aws}", "resources: {infra: gcp}", "resources: {infra: gcp}"),
            ("workdir: {url: a@b:c, ref: r}", "workdir: {url: a@b:d}", "workdir: {url: a@b:d}"),
            (
                "resources: {any_of: [{accelerators: A100:8}]}",
                "resources: {accelerators: H100:8}",
                "resources: {accelerators: H100:8}",
            ),
            (
                "resources: {accelerators: {A100: 8}}",
                "resources: {accelerators: {H100: 8}}",
                "resources: {accelerators: {H100: 8}}",
            ),
            (
                "file_mounts: {/a.b: ./x}",
                "file_mounts: {/c: ./y}",
                "file_mounts: {/c: ./y, /a.b: ./x}",
            ),
            (
                "resources: {any_of: [{cloud: aws}]}",
                "resources: {infra: slurm}",
                "resources: {infra: slurm}",
            ),
            (
                "resources: {cloud: gcp}",
                "resources: {any_of: [{infra: aws}]}",
                "resources: {any_of: [{infra: aws}]}",
            ),
            ("secrets: {A: s}", "envs: {A: b}", "envs: {A: b}"),
            ("envs: {A: b}", "secrets: {A: s}", "secrets: {A: s}"),
            ("file_mounts: {/d: ./x}", "volumes: {/d: v}", "volumes: {/d: v}"),
        ],
        gives_way,
    )


def test_numbers_of_variables_in_pyproject_stay_as_written():
    defaults = defaults_of({"pyproject.toml": "[tool.mportal]\nenvs = { A = 1.10, B = 1e-3 }\n"})
    text, _ = defaults.completed("run: x\n")
    assert JobSpec.parse(text).envs == {"A": "1.10", "B": "1e-3"}


@pytest.mark.timeout(20)
def test_a_long_line_in_pyproject_is_read_at_once():
    lines = "\n".join(start + " " * 30_000 for start in ("[", "[a", "a"))
    text = f'[tool.mportal]\nname = \'x\'\nsetup = """\n{lines}"""\n'
    assert defaults_of({"pyproject.toml": text}).values["name",].line == 2


def test_what_is_wrong_is_refused_with_file_line_and_nearest_key():
    def is_refused(name: str, text: str, said: str) -> None:
        with pytest.raises(InvalidFileError) as caught:
            defaults_of({name: text})
        assert caught.value.message.startswith(f"{name}:{said}")

    nearest = "There is no key 'accelerator' in resources. Did you mean accelerators?"
    check_each(
        [
            ("portal.yaml", "resources:\n  accelerator: A100\n", f"2: {nearest}"),
            ("pyproject.toml", "[tool.mportal.resources]\naccelerator = 1\n", f"2: {nearest}"),
            ("pyproject.toml", "[tool.mportal]\nresources.accelerator = 1\n", f"2: {nearest}"),
            ("pyproject.toml", "[tool.mportal]\nx\n", "2: This is not valid TOML"),
            ("portal.yaml", "a: [\n", "2: This is not valid YAML"),
            ("pyproject.toml", "[tool.mportal]\nnum_nodes = 0\n", "2: num_nodes must be"),
            (
                "pyproject.toml",
                "[tool.mportal]\n[project]\ndependencies = ['a b']\n",
                "3: project.dependencies: 'a b' is not a requirement.",
            ),
            (
                "pyproject.toml",
                "[tool.mportal]\n[project]\nrequires-python = 'new'\n",
                "3: project.requires-python: 'new' is not a range of versions.",
            ),
        ],
        is_refused,
    )


def test_a_variable_without_a_value_is_left_for_who_submits():
    text, _ = defaults_of({"portal.yaml": "envs: {TOKEN: null}\n"}).completed("run: x\n")
    assert JobSpec.parse(text, envs={"TOKEN": "t"}).envs == {"TOKEN": "t"}
