"""The start of `mportal`: what it imports, how it lists commands, and what it suggests."""

from __future__ import annotations

import subprocess
import sys

import click

from monarch_client.cli.main import cli
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
# A bare Python with click has 120.
MOST_MODULES = 260
# 300 ms together. `click` and the configuration are what every command needs.
SLOW_TO_IMPORT = {"httpx", "rich", "yaml", "msgspec", "monarch_client.spec", "monarch_client.sync"}


def modules_loaded_by(*words: str) -> set[str]:
    argv = [sys.executable, "-c", LOADED.format(words=list(words))]
    # No address of a portal: a command loads all that a request needs, and sends none.
    environment = {"MPORTAL_URL": "http://portal:port", "MPORTAL_TOKEN": "mpt_x"}
    ended = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    return set(ended.stderr.partition("MODULES")[2].split())


def test_a_command_starts_without_the_modules_of_others():
    bare = modules_loaded_by("--version")
    assert not bare & SLOW_TO_IMPORT
    assert not {name for name in bare if name.startswith("monarch_client.wire.")}
    assert len({name for name in bare if name.startswith("monarch_client")}) < 20

    ps = modules_loaded_by("ps", "--help")
    assert not ps & (SLOW_TO_IMPORT - {"msgspec"})
    assert not {name for name in ps if name.startswith("monarch_client.wire.queue")}


def test_help_of_common_commands_loads_no_http_yaml_or_packing():
    def check(command):
        loaded = modules_loaded_by(command, "--help")
        slow = (SLOW_TO_IMPORT - {"msgspec", "monarch_client.spec"}) | {"monarch_client.sync"}
        assert not loaded & slow
        assert len(loaded) < MOST_MODULES

    check_each(["submit", "run", "ps", "logs", "cancel", "plan", "template", "schedule"], check)


def test_a_request_loads_no_program_for_terminals():
    loaded = modules_loaded_by("whoami")
    assert "httpx" in loaded
    assert not loaded & {"rich", "pygments"}


def test_every_listed_command_exists_under_its_name():
    context = click.Context(cli)
    names = cli.list_commands(context)
    assert [getattr(cli.get_command(context, name), "name", None) for name in names] == names


def test_help_lists_the_commands_in_sections(mportal):
    text = mportal("--help").stdout
    assert text.index("Submit jobs:") < text.index("  run ") < text.index("Watch jobs:")


def test_a_mistyped_command_is_answered_with_the_closest_ones(mportal):
    ended = mportal("cancle")
    assert ended.exit_code == 2
    assert "Did you mean cancel?" in ended.stderr
