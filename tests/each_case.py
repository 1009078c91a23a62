"""Many cases of one rule as one test that names every case that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def check_each(cases: Iterable[Any], check: Callable[..., None]) -> None:
    """Run the check on each case; fail with a line for each case that fails, and the reason.

    A tuple is passed as arguments of the check, anything else as its only one. An error in one
    case does not hide the cases after it, as it would in a plain loop.
    """
    __tracebackhide__ = True
    reasons = [(case, _failure(check, case)) for case in cases]
    assert reasons, "there are no cases"
    lines = [f"{_shortened(repr(case), 100)}: {reason}" for case, reason in reasons if reason]
    if lines:
        pytest.fail("\n".join([f"{len(lines)} of {len(reasons)} cases fail:", *lines]))


def _failure(check: Callable[..., None], case: Any) -> str:
    """Return why the check fails on the case, or "" if it passes."""
    try:
        check(*case) if isinstance(case, tuple) else check(case)
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever the error is
        return f"{type(error).__name__}: {_shortened(str(error).partition(chr(10))[0])}"
    return ""


def _shortened(text: str, most: int = 300) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
