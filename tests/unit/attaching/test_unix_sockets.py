"""Unix sockets of this user's programs alone."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from monarch_client.attaching.unix_sockets import connect_to, listen_in

NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_listener_of_another_user_is_refused() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        with listen_in(folder, "own", 1), connect_to(str(folder / "own")):
            pass
        os.seteuid(NOBODY)
        try:
            listener = listen_in(folder, "other", 1)
        finally:
            os.seteuid(0)
        with listener, pytest.raises(ConnectionRefusedError, match="another user"):
            connect_to(str(folder / "other"))
