"""The portal's address: what of a file is believed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from monarch_client.runner.delivery.portal_address import portal_url
from tests.thief import A_STRANGER

CONFIGURED, MOVED = "http://127.0.0.1:8", "http://127.0.0.1:9"


def written(folder: Path) -> Path:
    file = folder / "portal.json"
    file.write_text(json.dumps({"url": MOVED}))
    return file


@pytest.mark.parametrize("is_safe", [True, False])
def test_where_the_portal_is_now_is_believed_only_if_no_job_can_have_written_it(
    tmp_path: Path, is_safe: bool
) -> None:
    file = written(tmp_path)
    file.chmod(0o644 if is_safe else 0o666)
    assert portal_url(CONFIGURED, str(file)) == (MOVED if is_safe else CONFIGURED)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_file_of_a_stranger_does_not_say_where_the_portal_is(tmp_path: Path) -> None:
    file = written(tmp_path)
    os.chown(file, A_STRANGER, A_STRANGER)
    assert portal_url(CONFIGURED, str(file)) == CONFIGURED
