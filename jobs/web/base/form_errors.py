"""Errors of actions, beside the fields of the form that they are about."""

from __future__ import annotations

from collections.abc import Callable

from django import forms

from jobs.actions.sharing.queue_input import InvalidSettingsError
from jobs.errors import ConflictError, PortalError


def accepted(
    form: forms.Form,
    action: Callable[[], object],
    *,
    refusals: tuple[type[PortalError], ...] = (ConflictError, InvalidSettingsError),
    field: str | None = None,
) -> bool:
    """Run `action` with the values of `form`; return False, with errors in the form, if refused.

    Errors without a field of their own go to `field`, by default the first one.
    """
    try:
        action()
    except refusals as error:
        _add_errors(form, error, field or next(iter(form.fields)))
        return False
    return True


def _add_errors(form: forms.Form, error: PortalError, field: str) -> None:
    whole = {"path": error.data.get("field", field), "message": error.message}
    for row in error.data.get("errors", [whole]):
        # The field of `caps.gpus:H100` is `caps`.
        name = row["path"].partition(".")[0]
        form.add_error(name if name in form.fields else field, row["message"])
