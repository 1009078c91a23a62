"""Asking one mesh admin: connections that were closed meanwhile, and references that are odd."""

from __future__ import annotations

from monarch_client.runner.mesh.admin import MeshAdmin
from tests.stand_in_admin import StandInAdmin


def test_a_kept_connection_that_was_closed_meanwhile_is_no_miss() -> None:
    stand_in = StandInAdmin()
    stand_in.mesh({})
    admin = MeshAdmin(stand_in.url, None)
    assert admin.ask("root").is_ok
    stand_in.hang_up()
    assert admin.ask("root").is_ok
    stand_in.close()
    assert "ConnectionRefusedError" in admin.ask("root").message
    admin.close()


def test_a_reference_that_no_path_can_hold_has_no_answer() -> None:
    admin = MeshAdmin("http://127.0.0.1:1", None)
    assert "UnicodeEncodeError" in admin.ask("proc<\ud800>").message
