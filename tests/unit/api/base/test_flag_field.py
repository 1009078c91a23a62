"""The JSON field for true or false."""

from __future__ import annotations

import pytest
from rest_framework.exceptions import ValidationError

from jobs.api.base.flag_field import FlagField


def test_true_and_false_alone_are_flags() -> None:
    field = FlagField(allow_null=True)
    assert [field.run_validation(given) for given in (True, False, None)] == [True, False, None]
    for given in (0, 1, 0.0, "true", "no", [], {}):
        with pytest.raises(ValidationError, match="valid boolean"):
            field.run_validation(given)
