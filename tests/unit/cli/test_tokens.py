"""A token as people paste it, and that no message shows one."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from monarch_client.cli.exit_codes import PORTAL_TROUBLE
from monarch_client.cli.main import cli
from monarch_client.cli.session import Session
from monarch_client.rest.config import Config, load
from tests.unit.cli.test_accounts import ME
from tests.unit.rest.fake_portal import ok

TOKEN = "mpt_" + "Zm9vYmFy-" * 4


@pytest.mark.parametrize("pasted", [f"{TOKEN}\n", f" {TOKEN}\r\n", f"\t{TOKEN} "])
def test_white_space_around_a_token_does_not_matter(mportal, portal, pasted):
    portal.on("GET /me", ok(ME))
    assert load({"MPORTAL_TOKEN": pasted}).token == TOKEN
    assert mportal("whoami", config=Config("http://portal", pasted)).exit_code == 0
    assert portal.requests[0].headers["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("wrong", [f"{TOKEN}\n{TOKEN}", f"{TOKEN} x", f"{TOKEN}\0", f"{TOKEN}ü"])
def test_a_token_that_can_be_none_is_refused_without_showing_it(mportal, portal, wrong):
    result = mportal("whoami", config=Config("http://portal", wrong))
    assert result.exit_code == PORTAL_TROUBLE
    assert "The token holds a space, a line break" in result.stderr
    assert TOKEN not in result.output + result.stderr
    assert portal.requests == []


def test_a_token_in_the_wrong_place_is_not_repeated(mportal):
    for result in (
        mportal("whoami", TOKEN),
        mportal("cancel", TOKEN),
        mportal(TOKEN),
        CliRunner(mix_stderr=False).invoke(cli, ["whoami"], obj=Session(Config(TOKEN, "mpt_x"))),
    ):
        assert result.exit_code != 0
        assert TOKEN not in result.output + result.stderr
        assert "mpt_..." in result.stderr


@pytest.mark.parametrize("address", ["http://portal:port", "http://[::1", "http://portal:99999"])
def test_an_address_that_is_none_is_reported(mportal, address):
    result = mportal("whoami", config=Config(address, TOKEN))
    assert result.exit_code == PORTAL_TROUBLE
    assert f"{address} is not an address of a portal" in result.stderr
