"""docker-compose.yml and the image: every command is one that exists."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OURS = {name: one for name, one in COMPOSE["services"].items() if "build" in one}


def test_every_process_of_the_portal_has_a_service():
    assert set(OURS) == {"web", "worker", "beat", "follower", "gateway", "migrate"}
    assert {"postgres", "redis"} <= set(COMPOSE["services"])


@pytest.mark.feature("P1.2")
@pytest.mark.parametrize("name", sorted(OURS))
def test_its_command_names_an_entry_that_exists(name):
    program, *arguments = shlex.split(OURS[name]["command"])
    match program:
        case "python":
            assert arguments[0] == "manage.py"
            assert arguments[1] in get_commands()
        case "celery":
            assert arguments[:2] == ["--app", "monarch_portal"]
            assert import_module("monarch_portal").celery_app
            assert arguments[2] in {"worker", "beat"}
        case "uvicorn":
            module, _, attribute = arguments[0].partition(":")
            assert getattr(import_module(module), attribute)
        case _:
            pytest.fail(f"{program} is none of the portal's entries")


def test_every_lasting_service_has_a_health_check_and_comes_back():
    for name, service in COMPOSE["services"].items():
        if name != "migrate":
            assert "healthcheck" in service, name
            assert service["restart"] == "unless-stopped", name


def test_every_variable_it_reads_is_in_the_example_or_has_a_default():
    text = (ROOT / "docker-compose.yml").read_text()
    needed = set(re.findall(r"\$\{(\w+):\?", text))
    optional = set(re.findall(r"\$\{(\w+):-", text))
    offered = set(re.findall(r"^(\w+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert needed <= offered
    assert offered <= needed | optional


def test_the_image_takes_only_files_that_exist():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    taken = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE
    )
    sources = {source for line in copied for source in line.split()}
    assert sources == taken
    assert all((ROOT / source).exists() for source in sources)
