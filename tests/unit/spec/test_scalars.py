"""The meaning of unquoted words of YAML."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from monarch_client.spec.nodes import plain_value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-12", -12), ("1_000", 1000), ("0.5", 0.5), (".5", 0.5), ("1.5e+3", 1500.0),
     ("yes", True), ("Off", False), ("~", None), ("", None)],
)  # fmt: skip
def test_plain_numbers_flags_and_nothing_are_read(text, value):
    assert plain_value(text) == value
    assert yaml.safe_load(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "010",
        "0x1F",
        "0b11",
        "12:30:00",
        "2024-01-01",
        "1e5",
        "3e-4",
        ".inf",
        ".nan",
        "1.0e+9999",
        "9" * 30,
        "y",
        "x",
    ],
)
def test_what_is_rarely_meant_stays_text(text):
    assert plain_value(text) == text


@given(st.text("0123456789.eE+-_xob:~yesnoYESNOtrufaFAL", max_size=12))
def test_no_word_is_a_number_or_flag_that_is_text_to_skypilots_reader(text):
    value = plain_value(text)
    if not isinstance(value, str):
        assert yaml.safe_load(text) == value
