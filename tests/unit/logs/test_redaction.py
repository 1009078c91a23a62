"""Tokens of the portal never get into a stored log."""

from __future__ import annotations

import pytest

from jobs.logs.redaction import redacted

API_TOKEN = "mpt_" + "aB3-_" * 8 + "xyz"
ATTEMPT_TOKEN = "mpa_" + "0123456789abcdef" * 4


@pytest.mark.parametrize("token", [API_TOKEN, ATTEMPT_TOKEN])
def test_a_token_is_masked_wherever_it_stands(token):
    assert redacted(f"MPORTAL_TOKEN={token}") == f"MPORTAL_TOKEN={token[:4]}***"
    assert token not in redacted(f'{{"a":"{token}","b":"{token}"}}')


@pytest.mark.parametrize("text", ["", "mpa_", "mpt_short", "an ordinary line", "xmpa_" + "0" * 64])
def test_everything_else_is_left_alone(text):
    assert redacted(text) == text
