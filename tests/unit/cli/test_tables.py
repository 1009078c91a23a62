"""Tables on a terminal of 80 columns."""

from __future__ import annotations

import click
import pytest

from monarch_client.cli.tables import print_table, shortened

HEADERS = ["ID", "NAME", "STATUS", "NODES", "USER", "AGE", "WHY"]
WHY = "Waiting for 1 node: your limit in project rl is 4 nodes and 4 are in use."
LONG_NAME = "llama-finetune-of-many-layers-and-a-name-to-match"


@pytest.fixture
def printed(monkeypatch, capsys):
    """Return a function that prints a table on a terminal and returns its lines."""

    def lines(headers, rows, width=80, is_terminal=True, **options):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
        print_table(headers, rows, **options)
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


def test_a_name_keeps_its_end_and_a_phrase_its_begin():
    assert shortened("llama-finetune-of-layers-17", 16) == "llama-fine\u2026rs-17"
    assert shortened("at 02:30, Monday through Friday", 17) == "at 02:30, Monday\u2026"


def test_columns_that_do_not_fit_are_left_out_in_order_and_named(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    row = [
        "1",
        LONG_NAME,
        "PROVISIONING",
        "8 x H100:8",
        "alexandra.kowalski",
        "3 min",
        "$1,234.50",
        WHY,
    ]
    print_table([*HEADERS[:-1], "COST", "WHY"], [row], least=("COST", "USER"))
    shown = capsys.readouterr()
    lines = click.unstyle(shown.out).splitlines()
    assert lines[0].split() == ["ID", "NAME", "STATUS", "NODES", "AGE"]
    assert click.unstyle(shown.err).startswith("No room for COST, USER: widen")
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize("width", [20, 60, 80, 120, 200])
def test_no_row_is_wider_than_the_terminal_and_no_amount_is_cut(printed, width):
    headers = ["RANK", "STATUS", "MEMORY", "GPU %", "NAME", "HEARD"]
    row = ["0", "PROVISIONING", "8.0 GiB of 32 GiB", "97 98 99 97", LONG_NAME, "3 min ago"]
    lines = printed(headers, [row, row], width)
    assert len(lines) == 3
    assert max(map(len, lines)) <= width
    cut = [word for line in lines for word in line.split("  ") if "\u2026" in word]
    assert all(word.strip().startswith("llama") for word in cut)


def test_a_pipe_has_all_columns_whole(printed):
    row = ["1", LONG_NAME, "PROVISIONING", "8 x H100:8", "alice", "3 min", WHY]
    lines = printed(HEADERS, [row], 60, is_terminal=False)
    assert [cell.strip() for cell in lines[1].split("  ") if cell.strip()] == row


def test_numbers_are_aligned_at_the_right_but_for_the_first_column(printed):
    lines = printed(["ID", "COST", "SHARE"], [["7", "$5.00", "3 %"], ["12", "$1,234.50", "-"]])
    assert lines == ["ID       COST  SHARE", "7       $5.00    3 %", "12  $1,234.50      -"]


def test_values_are_wrapped_and_not_cut_where_no_column_may_be_missing(printed):
    values = [f"{number} GiB of 100 TiB" for number in range(8)]
    headers = [f"COLUMN {number}" for number in range(8)]
    lines = printed(headers, [values], wraps=True)
    assert max(map(len, lines)) <= 80
    assert "\u2026" not in " ".join(lines)
    assert " ".join(lines).split().count("GiB") == 8
