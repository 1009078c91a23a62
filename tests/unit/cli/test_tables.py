"""Tables on a terminal of 80 columns."""

from __future__ import annotations

import click
import pytest

from monarch_client.cli.output import print_table

HEADERS = ["ID", "NAME", "STATUS", "NODES", "USER", "AGE", "WHY"]
WHY = "Waiting for 1 node: your limit in project rl is 4 nodes and 4 are in use."
LONG_NAME = "llama-finetune-of-many-layers-and-a-name-to-match"


@pytest.fixture
def printed(monkeypatch, capsys):
    """Return a function that prints a table on a terminal and returns its lines."""

    def lines(headers, rows):
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        print_table(headers, rows)
        return click.unstyle(capsys.readouterr().out).splitlines()

    return lines


def test_a_long_reason_goes_below_its_row_and_no_status_is_cut(printed):
    row = ["1043", "ppo", "PROVISIONING", "8 x H100:8", "alice", "3 min", WHY]
    first, second, third = printed(HEADERS, [row])
    assert first.split() == HEADERS[:-1]
    assert "PROVISIONING  8 x H100:8  alice  3 min" in second
    assert third == f"  {WHY}"


def test_a_name_that_is_too_long_is_cut(printed):
    row = ["1", LONG_NAME, "RUNNING", "8 x H100:8", "alice", "3 min", WHY]
    lines = printed(HEADERS, [row])
    assert max(map(len, lines)) <= 80
    assert "llama-finetune-of-many" in lines[1] and "RUNNING" in lines[1]


def test_a_status_is_whole_even_where_cells_are_wrapped(printed):
    row = ["1", "PROVISIONING", *["some more words"] * 5]
    lines = printed([f"COLUMN {number}" for number in range(7)], [row])
    assert "PROVISIONING" in " ".join(lines)


def test_values_of_many_columns_are_wrapped_and_not_cut(printed):
    values = [f"{number} GiB of 100 TiB" for number in range(8)]
    shown = " ".join(printed([f"COLUMN {number}" for number in range(8)], [values]))
    assert "\u2026" not in shown
    assert shown.split().count("GiB") == 8
