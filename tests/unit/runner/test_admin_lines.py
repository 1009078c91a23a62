"""What Monarch prints of its mesh admin is left out of a driver's output, and nothing else."""

from __future__ import annotations

from monarch_client.runner.admin_lines import WithoutAdminLines, is_admin_line
from monarch_client.runner.lines import Piece

NOTICE = [
    "Mesh admin server listening on https://localhost:38625",
    "  - Root node:     curl --cacert /x/ca.crt https://localhost:38625/v1/root",
    "  - Mesh tree:     curl --cacert /x/ca.crt https://localhost:38625/v1/tree",
    "  - API docs:      curl --cacert /x/ca.crt https://localhost:38625/SKILL.md",
    "  - TUI:           buck2 run x:hyperactor_mesh_admin_tui -- --addr https://localhost:38625",
    "                   cargo run -p hyperactor_mesh_admin_tui_lib --bin x -- --addr https://l:1",
]


def written(*batches: list[str], are_ours: bool = True) -> list[str]:
    kept: list[str] = []
    write = WithoutAdminLines(
        lambda _stream, pieces: kept.extend(each.text for each in pieces), lambda: are_ours
    )
    for batch in batches:
        write("stdout", [Piece(text) for text in batch])
    return kept


def test_the_notice_is_left_out_wherever_other_lines_cut_in() -> None:
    assert written(["first", *NOTICE, "last"]) == ["first", "last"]
    assert written(*[[line, f"step {n}"] for n, line in enumerate(NOTICE)]) == [
        f"step {n}" for n in range(len(NOTICE))
    ]


def test_what_only_looks_like_it_stays() -> None:
    alike = [*NOTICE[1:], "I said: " + NOTICE[0]]
    assert written(alike) == alike
    assert written(NOTICE, NOTICE[1:], ["  - loss: 3"]) == [*NOTICE[1:], "  - loss: 3"]


def test_the_notice_of_an_admin_of_the_users_own_stays() -> None:
    assert written(NOTICE, are_ours=False) == NOTICE


def test_no_line_of_the_notice_is_evidence() -> None:
    assert [line for line in NOTICE if not is_admin_line(line)] == []
    assert not is_admin_line("  - loss: 3")
