"""Exceptions of the cluster on the client: their type where it is imported, data elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from monarch_client.gateway.proxies.errors import RemoteError, ResultExpiredError, error_of
from monarch_client.runner.scripts.mportal_proxies import failures
from monarch_client.runner.scripts.mportal_proxies.classes import find_imported
from monarch_client.runner.scripts.mportal_proxies.codec import Codec

CODEC = Codec(find_imported)
UNKNOWING = Codec(lambda _name: None)


class DivergedError(ValueError):
    """An exception of a user whose constructor takes other arguments than its base."""

    constructed = 0

    def __init__(self, step: int, *, loss: float) -> None:
        super().__init__(f"diverged at {step}")
        self.loss = loss
        type(self).constructed += 1


def sent(error: BaseException, codec: Codec = CODEC, **location: Any) -> Exception:
    """Return what the client raises for an exception of the cluster."""
    failure = failures.describe(error, CODEC, **location)
    return error_of(codec.decode(CODEC.encode(failure)), codec)


def test_a_builtin_exception_keeps_its_type_and_arguments() -> None:
    for error in (ValueError("no"), KeyError("k"), FileNotFoundError(2, "none", "/x"), OSError(5)):
        found = sent(error)
        assert (type(found), found.args, str(found)) == (type(error), error.args, str(error))


def test_an_exception_of_an_imported_module_keeps_type_text_and_attributes() -> None:
    error = DivergedError(3, loss=9.5)
    before = DivergedError.constructed
    found = sent(error)
    assert (type(found), str(found)) == (DivergedError, "diverged at 3")
    assert found.loss == 9.5
    assert DivergedError.constructed == before


def test_the_remote_traceback_is_the_cause() -> None:
    def diverge() -> None:
        raise DivergedError(3, loss=9.5)

    with pytest.raises(DivergedError) as caught:
        diverge()
    cause = sent(caught.value, rank=3, host="10.0.0.5").__cause__
    assert isinstance(cause, RemoteError)
    assert "in diverge" in cause.traceback
    assert (cause.rank, cause.host) == (3, "10.0.0.5")


def test_an_exception_that_is_not_imported_is_a_remote_error_with_its_fields() -> None:
    found = sent(DivergedError(3, loss=9.5), UNKNOWING, rank=1, host="10.0.0.5")
    assert isinstance(found, RemoteError)
    assert found.type_name == f"{__name__}.DivergedError"
    assert "DivergedError: diverged at 3" in found.traceback
    assert (found.rank, found.host) == (1, "10.0.0.5")
    assert "rank 1 on 10.0.0.5" in str(found)


def test_a_message_cannot_raise_what_is_no_exception() -> None:
    for name in ("builtins:SystemExit", "builtins:KeyboardInterrupt", "builtins:list"):
        failure = failures.describe(ValueError("x"), CODEC)
        found = error_of({**failure, "type": name}, CODEC)
        assert type(found) is RemoteError


def test_an_exception_with_what_is_not_data_is_a_remote_error() -> None:
    found = sent(ValueError(object()))
    assert type(found) is RemoteError
    assert found.type_name == "ValueError"


def test_an_expired_result_has_an_error_of_its_own() -> None:
    assert type(error_of("expired", CODEC)) is ResultExpiredError
