"""Report metrics of a program: a line of its output, which the portal shows as charts."""

from __future__ import annotations

import operator
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import SupportsFloat

# Numbers of this size are mostly counts and times, of which all digits matter. A float holds whole
# numbers up to here.
_LEAST_COUNT, _LARGEST_COUNT = 1e4, 2.0**53
# The portal reads no longer ones.
_MOST_DIGITS = 40
_NAME = re.compile(r"[A-Za-z_][\w./-]{0,63}", re.ASCII)


def log(step: int, **values: SupportsFloat) -> None:
    """Report the values of a step: `log(12, loss=0.25)` prints `step=12 loss=0.25`.

    Values may be tensors of one element. They are printed in six digits, whole numbers in all.
    Works in any process of a job, on any of its nodes.
    ValueError for a name that the portal cannot read, or without values.
    """
    if not values:
        raise ValueError("log() needs a value, such as log(12, loss=0.25).")
    for name in values:
        if not _NAME.fullmatch(name):
            raise ValueError(f"log() cannot take the name {name[:80]!r}.")
    pairs = [f"{name}={_in_digits(value)}" for name, value in values.items()]
    # One write, so that lines of other threads and processes do not come in between.
    sys.stdout.write("step={} {}\n".format(int(step), " ".join(pairs)))
    sys.stdout.flush()


def _in_digits(value: SupportsFloat) -> str:
    """Return a number in six digits, or in as many as its whole part has, and two."""
    try:
        whole = operator.index(value)  # type: ignore[arg-type]
        if abs(whole) < 10**_MOST_DIGITS:
            return str(whole)
        number = float(whole)
    except TypeError:
        number = float(value)
    except OverflowError:
        number = float("inf") if whole > 0 else float("-inf")
    if _LEAST_COUNT <= abs(number) <= _LARGEST_COUNT:
        return f"{number:.2f}".rstrip("0").rstrip(".")
    return f"{number:.6g}"
