"""Lines of Monarch about a mesh admin, which are no evidence of how a program ended."""

from __future__ import annotations

from monarch_client.runner.base.admin_lines import is_admin_line

NOTICE = [
    "Mesh admin server listening on https://localhost:38625",
    "  - Root node:     curl --cacert /x/ca.crt https://localhost:38625/v1/root",
    "  - Mesh tree:     curl --cacert /x/ca.crt https://localhost:38625/v1/tree",
    "  - API docs:      curl --cacert /x/ca.crt https://localhost:38625/SKILL.md",
    "  - TUI:           buck2 run x:hyperactor_mesh_admin_tui -- --addr https://localhost:38625",
    "                   cargo run -p hyperactor_mesh_admin_tui_lib --bin x -- --addr https://l:1",
]


def test_no_line_of_the_notice_is_evidence() -> None:
    assert [line for line in NOTICE if not is_admin_line(line)] == []
    assert not is_admin_line("  - loss: 3")
