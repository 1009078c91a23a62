"""The start of `mportal`: what it imports, how it lists commands, and what it suggests."""

from __future__ import annotations

import subprocess
import sys

import click

from monarch_client.cli.main import PortalGroup, cli
from tests.each_case import check_each

LOADED = """
import sys
from monarch_client.cli.main import main
sys.argv[1:] = {words!r}
try:
    main()
except SystemExit:
    print("MODULES", *sys.modules, file=sys.stderr)
"""
# Imports every command and prints each with the modules, of those that are named, that it loads.
ALL_COMMANDS = """
import sys
import click
from monarch_client.cli.main import cli

def visit(group, path):
    context = click.Context(group)
    for name in group.list_commands(context):
        before = set(sys.modules)
        command = group.get_command(context, name)
        for slow in sorted((set(sys.modules) - before) & set(sys.argv[1:])):
            print(*path, name, "loads", slow)
        if isinstance(command, click.Group):
            visit(command, (*path, name))

visit(cli, ())
"""
# A bare Python with click has 120.
MOST_MODULES = 260
# 300 ms together. `click` and the configuration are what every command needs.
SLOW_TO_IMPORT = {"httpx", "rich", "yaml", "msgspec", "monarch_client.spec", "monarch_client.sync"}
# Some rules of keys are quick to import, the whole specification is not.
SLOW_FOR_HELP = {
    *(SLOW_TO_IMPORT - {"monarch_client.spec"}),
    "asyncio",
    "platformdirs",
    "tomllib",
    "monarch_client.spec.job_spec",
    "monarch_client.spec.portal_keys",
}


def loaded_and_shown(*words: str, **more: str) -> tuple[set[str], str]:
    argv = [sys.executable, "-c", LOADED.format(words=list(words))]
    # No address of a portal: a command loads all that a request needs, and sends none.
    environment = {"MPORTAL_URL": "http://portal:port", "MPORTAL_TOKEN": "mpt_x", **more}
    ended = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    return set(ended.stderr.partition("MODULES")[2].split()), ended.stdout


def modules_loaded_by(*words: str) -> set[str]:
    return loaded_and_shown(*words)[0]


def test_a_command_starts_without_the_modules_of_others():
    bare = modules_loaded_by("--version")
    assert not bare & SLOW_TO_IMPORT
    assert not {name for name in bare if name.startswith("monarch_client.wire.")}
    assert len({name for name in bare if name.startswith("monarch_client")}) < 20


def test_help_of_no_command_loads_http_packing_or_the_types_of_answers():
    ended = subprocess.run(
        [sys.executable, "-c", ALL_COMMANDS, *SLOW_FOR_HELP],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == ""


def test_help_of_a_command_loads_few_modules():
    def check(command):
        assert len(modules_loaded_by(command, "--help")) < MOST_MODULES

    check_each(["submit", "ps", "attach", "schedule"], check)


def test_completion_of_a_command_imports_no_command():
    typed = {"COMP_WORDS": "mportal sc", "COMP_CWORD": "1"}
    loaded, shown = loaded_and_shown(_MPORTAL_COMPLETE="bash_complete", **typed)
    assert shown.split() == ["plain,schedule"]
    assert "monarch_client.cli.schedules" not in loaded


def test_the_line_of_a_command_is_the_first_sentence_of_its_help_and_fits_80_columns():
    groups = [cli, cli.get_command(click.Context(cli), "admin")]

    def check(group, name, text):
        command = group.get_command(click.Context(group), name)
        assert text == command.get_short_help_str(1000)
        assert len(text) <= 62

    check_each(
        [
            (group, name, text)
            for group in groups
            for section in group.sections.values()
            for name, (_, text) in section.items()
        ],
        check,
    )


def test_a_request_loads_no_program_for_terminals():
    loaded = modules_loaded_by("whoami")
    assert "httpx" in loaded
    assert not loaded & {"rich", "pygments"}


def test_every_listed_command_exists_under_its_name():
    context = click.Context(cli)
    names = cli.list_commands(context)
    assert [getattr(cli.get_command(context, name), "name", None) for name in names] == names


def test_help_of_all_commands_imports_none():
    assert "monarch_client.cli.submit" not in modules_loaded_by("--help")


def test_help_lists_the_commands_in_sections(mportal):
    text = mportal("--help").stdout
    assert text.index("Submit jobs:") < text.index("  run ") < text.index("Watch jobs:")


def test_a_mistyped_command_is_answered_with_the_closest_ones(mportal):
    ended = mportal("cancle")
    assert ended.exit_code == 2
    assert "Did you mean cancel?" in ended.stderr


def test_a_command_of_another_program_is_answered_with_the_one_that_does_the_same(mportal):
    names = PortalGroup().list_commands(click.Context(cli))
    assert set(PortalGroup.synonyms.values()) <= set(names)
    assert not set(PortalGroup.synonyms) & set(names)
    assert mportal("stop", "11").stderr.endswith("Did you mean cancel?\n")
