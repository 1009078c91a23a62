"""Lines of Monarch's own output, which viewers fold and which are no evidence of an end."""

from __future__ import annotations

from monarch_client.runner.vocabulary.monarch_lines import is_own_line

OWN = [
    "Monarch internal logs are being written to /tmp/root/monarch_log.log; execution id root_8",
    "Monarch internal logs are being written to ",
    "/tmp/root/monarch_log.log; execution id root_Nov-27_10:25_596",
    "Mesh admin server listening on https://localhost:38625",
    "  - Root node:     curl --cacert /x/ca.crt https://localhost:38625/v1/root",
    "  - Mesh tree:     curl --cacert /x/ca.crt https://localhost:38625/v1/tree",
    "  - API docs:      curl --cacert /x/ca.crt https://localhost:38625/SKILL.md",
    "  - TUI:           buck2 run x:hyperactor_mesh_admin_tui -- --addr https://localhost:38625",
    "                   cargo run -p hyperactor_mesh_admin_tui_lib --bin x -- --addr https://l:1",
]
OF_PROGRAMS = [
    "  - loss: 3",
    "  - API docs: see https://example.org",
    "Monarch reported a fault:",
    "/tmp/root/monarch_log.log",
    "read /tmp/root/monarch_log.log; execution id root_8",
    "ValueError: Monarch internal logs are being written to /tmp",
    "monarch._rust_bindings.monarch_hyperactor.supervision.SupervisionError: g.die() failed",
]


def test_lines_that_monarch_prints_about_itself_are_recognized_and_no_others() -> None:
    assert [line for line in OWN if not is_own_line(line)] == []
    assert [line for line in OF_PROGRAMS if is_own_line(line)] == []
