"""SkyPilot's errors, by the names of their classes, as kinds that say what to do."""

from __future__ import annotations

import httpx
import pytest

from monarch_client.skypilot.errors import KINDS, SkyPilotError
from monarch_client.skypilot.translate import (
    KIND_OF_CLASS,
    error_of,
    without_color,
    without_commands,
)


def raised(
    name: str, message: str = "words", *bases: type[Exception], **fields: object
) -> Exception:
    """Make an error of a class of that name, as of a package that is not imported here."""
    error = type(name, bases or (Exception,), {})(message)
    for field, value in fields.items():
        setattr(error, field, value)
    return error


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("[Errno 111] Connection refused"),
        httpx.ReadError(""),
        httpx.RemoteProtocolError("Server disconnected without sending a response."),
        httpx.WriteTimeout(""),
        TimeoutError(),
    ],
)
def test_a_folder_that_cannot_be_sent_now_says_that_the_server_is_away(error) -> None:
    assert error_of(error).kind == "server_away"


def test_every_kind_in_the_table_is_one_that_callers_know() -> None:
    assert set(KIND_OF_CLASS.values()) <= set(KINDS)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (raised("ResourcesUnavailableError", failover_history=["us-east-1: none"]), "no_capacity"),
        (raised("ResourcesUnavailableError", failover_history=[]), "invalid"),
        (
            raised("ResourcesUnavailableError", "Task requires AWS which is not enabled."),
            "credentials",
        ),
        (raised("NotSupportedError"), "not_supported"),
        (raised("ResourcesMismatchError"), "mismatch"),
        (raised("InvalidSkyPilotConfigError", "x", ValueError), "invalid"),
        (raised("ClusterDoesNotExist", "x", ValueError), "not_found"),
        (raised("ClusterNotUpError"), "not_up"),
        (raised("NoCloudAccessError"), "credentials"),
        (raised("UserRequestRejectedByPolicy"), "permission"),
        (raised("ApiServerAuthenticationError", "x", RuntimeError), "permission"),
        (raised("ApiServerConnectionError", "x", RuntimeError), "server_away"),
        (raised("ReadTimeout", "x", OSError), "server_away"),
        (raised("APIVersionMismatchError", "x", RuntimeError), "version"),
        (raised("RequestCancelled"), "cancelled"),
        (raised("RequestInterruptedError"), "interrupted"),
        (raised("CommandError"), "command"),
        (raised("StorageUploadError"), "command"),
        (raised("VolumeNotFoundError"), "not_found"),
        (RuntimeError("Failed to get request abc: 404 gone"), "not_found"),
        (raised("HTTPError", "401 Client Error: Unauthorized for url: x"), "permission"),
        (ModuleNotFoundError("No module named 'sky'"), "version"),
        (ConnectionRefusedError("refused"), "server_away"),
        (RuntimeError("anything"), "other"),
        (KeyError("anything"), "other"),
    ],
)
def test_each_error_has_its_kind(error: Exception, kind: str) -> None:
    assert error_of(error).kind == kind


def test_the_places_that_were_tried_are_reasons_once_each_and_without_colors() -> None:
    history = [ValueError("\x1b[31mus-east-1a: full\x1b[0m"), ValueError("us-east-1a: full")]
    error = error_of(raised("ResourcesUnavailableError", failover_history=history))
    assert error.detail["reasons"] == ["us-east-1a: full"]


def test_addresses_and_retries_stay_out_of_what_people_read() -> None:
    error = error_of(raised("ConnectionError", "HTTPConnectionPool(host='127.0.0.1', port=1)"))
    assert error.message == "SkyPilot's server does not answer."
    assert "HTTPConnectionPool" in error.detail["said"]


def test_an_error_that_cannot_be_shown_still_has_a_message() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise NotImplementedError

    assert error_of(OddError()).message == "OddError"


def test_our_own_errors_pass_unchanged() -> None:
    error = SkyPilotError("not_up", "x")
    assert error_of(error) is error
    again = SkyPilotError.from_dict(error.to_dict())
    assert (again.kind, again.message, again.detail) == ("not_up", "x", {})


def test_an_unknown_kind_is_other() -> None:
    assert SkyPilotError("new", "x").kind == "other"


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[0m\x1b[32m✓ fine\x1b[0m",
        "\x1b[1;31m✓ fine",
        "\x1b[?25l✓ fine\x1b[K",
        "  ✓ fine\n",
    ],
)
def test_colors_and_cursor_words_are_taken_out(text: str) -> None:
    assert without_color(text) == "✓ fine"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "Nothing satisfies 1x H1000.\nTo fix: relax it.\n\nHint: sky gpus list",
            "Nothing satisfies 1x H1000.",
        ),
        (
            "Task requires gcp which is not enabled. To enable access, run: sky check gcp",
            "Task requires gcp which is not enabled.",
        ),
        ("Cloud access is not set up. Run: sky check", "Cloud access is not set up."),
        ("Lambda has no spot instances.", "Lambda has no spot instances."),
    ],
)
def test_commands_of_skypilot_are_not_passed_on_to_people(text: str, kept: str) -> None:
    assert without_commands(text) == kept
