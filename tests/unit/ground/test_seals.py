"""Sealed content opens only with the keys of the installation, and only for its subject."""

from __future__ import annotations

import pytest

from jobs.errors import SecretsUnavailableError
from jobs.ground.seals import new_key, resealed, sealed, unsealed


@pytest.fixture
def keys(settings) -> list[str]:
    settings.MPORTAL_SECRET_KEYS = [new_key()]
    return settings.MPORTAL_SECRET_KEYS


@pytest.mark.parametrize("text", ["x", "zwei\nZeilen", "sn\N{SNOWMAN}w", "a\0b", "v" * 40_000])
def test_what_was_sealed_comes_back(keys, text):
    content = sealed(text, about="project 1 A")
    assert len(text) == 1 or text.encode() not in content
    assert unsealed(content, about="project 1 A") == text


def test_the_same_text_is_never_sealed_alike(keys):
    assert sealed("value", about="a") != sealed("value", about="a")


def test_it_opens_only_as_what_it_is_about(keys):
    content = sealed("value", about="project 1 A")
    for other in ("project 2 A", "project 1 B", "project 1 A\0value", ""):
        with pytest.raises(SecretsUnavailableError):
            unsealed(content, about=other)


def test_a_change_to_it_is_noticed(keys):
    content = bytearray(sealed("value", about="a"))
    content[30] ^= 1
    with pytest.raises(SecretsUnavailableError):
        unsealed(bytes(content), about="a")


def test_after_a_rotation_the_old_key_may_go(keys):
    content = sealed("value", about="a")
    old, new = keys[0], new_key()
    keys[:] = [new, old]
    assert unsealed(content, about="a") == "value"
    again = resealed(content)
    keys[:] = [new]
    assert unsealed(again, about="a") == "value"
    with pytest.raises(SecretsUnavailableError, match="Give that key back"):
        unsealed(content, about="a")
    with pytest.raises(SecretsUnavailableError):
        resealed(content)


def test_without_a_key_nothing_is_sealed(settings):
    settings.MPORTAL_SECRET_KEYS = []
    with pytest.raises(SecretsUnavailableError, match="MPORTAL_SECRET_KEYS"):
        sealed("value", about="a")


def test_a_key_that_is_none_is_reported_without_showing_it(settings):
    settings.MPORTAL_SECRET_KEYS = ["correct-horse-battery-staple"]
    with pytest.raises(SecretsUnavailableError) as caught:
        sealed("value", about="a")
    assert "MPORTAL_SECRET_KEYS" in caught.value.message
    assert "horse" not in caught.value.message
