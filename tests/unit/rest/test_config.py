"""The sources of the portal's address and the token, and how they are stored."""

from __future__ import annotations

import pytest

from monarch_client.rest.config import BadConfigError, Config, load, save

pytestmark = pytest.mark.usefixtures("own_config")
KEPT = Config("https://portal.example", "mpt_kept", "rl")


def test_without_a_file_nothing_is_known():
    assert load({}) == Config()


def test_what_is_saved_is_loaded_and_for_its_owner_alone(own_config):
    save(Config(KEPT.url, 'mpt_"quoted"\\', "rl"))
    assert load({}) == Config(KEPT.url, 'mpt_"quoted"\\', "rl")
    assert own_config.stat().st_mode & 0o777 == 0o600
    assert own_config.parent.stat().st_mode & 0o777 == 0o700


def test_saving_again_tightens_a_file_that_was_open(own_config):
    save(KEPT)
    own_config.chmod(0o644)
    save(KEPT)
    assert own_config.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in own_config.parent.iterdir()] == ["config.toml"]


def test_the_environment_comes_first():
    save(KEPT)
    environ = {"MPORTAL_TOKEN": "mpt_env", "MPORTAL_PROJECT": "vision"}
    assert load(environ) == Config(KEPT.url, "mpt_env", "vision")


def test_a_kept_token_is_never_sent_to_another_portal():
    save(KEPT)
    assert load({"MPORTAL_URL": "https://elsewhere.example/"}) == Config(
        "https://elsewhere.example", "", ""
    )
    assert load({"MPORTAL_URL": "https://portal.example/"}) == KEPT


def test_a_file_that_is_no_toml_says_what_to_do(own_config):
    save(KEPT)
    own_config.write_text("url = ")
    with pytest.raises(BadConfigError, match="mportal login"):
        load({})
