from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import InvalidCursorError
from jobs.logs.cursor import START, Cursor, parse

CURSORS = st.builds(Cursor, st.integers(0, 10**9 - 1), st.integers(0, 10**18 - 1))


@given(CURSORS)
def test_a_cursor_reads_back_as_it_was_written(cursor: Cursor) -> None:
    assert parse(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text", ["", "1", "1:", ":1", "a:1", "1:2:3", "-1:2", "1:2\n", " 1:2", "١:٢", "1:" + "9" * 30]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        parse(text)


def test_cursors_order_by_attempt_and_then_by_line() -> None:
    assert START < Cursor(1, 0) < Cursor(1, 10) < Cursor(2, 1)
