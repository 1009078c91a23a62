"""The parameters of a request for a log: where to begin, how much, and of which nodes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rest_framework import serializers

from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.strict import read, require_known_parameters
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.logs.cursor import parse
from jobs.logs.levels import PATTERNS
from jobs.logs.matching import Question
from jobs.logs.reading import MAX_LIMIT, Wanted
from jobs.readers.job_log import LogChoice
from monarch_client.runner.vocabulary.streams import STREAMS

END = "end"


class CursorField(serializers.CharField):
    """A place in a log, `attempt:line`."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the cursor, or None when there is none. InvalidCursorError is passed on."""
        text = super().to_internal_value(data)
        return parse(text) if text else None


class EndCursorField(CursorField):
    """A place in a log, or `end`."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the cursor, or `end` itself."""
        return END if data == END else super().to_internal_value(data)


class LogChoiceQuery(serializers.Serializer[Any]):
    """The choice of lines."""

    attempt = WholeNumberField(
        required=False, allow_null=True, default=None, min_value=1, help_text="Its number."
    )
    rank = WholeNumberField(required=False, allow_null=True, default=None, min_value=0)
    stream = ChoiceField(
        choices=sorted(STREAMS), required=False, allow_null=True, allow_blank=True, default=None
    )


class LogQuery(LogChoiceQuery):
    """A page of a log."""

    after = CursorField(
        required=False, allow_blank=True, default=None, help_text="Lines after `attempt:line`."
    )
    before = EndCursorField(
        required=False,
        allow_blank=True,
        default=None,
        help_text="The last lines before `attempt:line`, or before the `end` of the log.",
    )
    limit = WholeNumberField(required=False, default=1000, min_value=1, max_value=MAX_LIMIT)


class SearchQuery(LogChoiceQuery):
    """The text and filters of a log search."""

    q = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=1000,
        trim_whitespace=False,
        help_text="The words, or the pattern. Without it every line of the choice is a hit.",
    )
    regex = serializers.BooleanField(
        required=False, default=False, help_text="`q` is a regular expression of RE2's."
    )
    case = serializers.BooleanField(
        required=False, default=False, help_text="Match capital and small letters exactly."
    )
    level = ChoiceField(
        choices=sorted(PATTERNS),
        required=False,
        allow_null=True,
        allow_blank=True,
        default=None,
        help_text="Lines that look like one of this level or a graver one, by their words.",
    )
    since = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Lines from this time on."
    )
    until = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Lines before this time."
    )
    after = CursorField(
        required=False, allow_blank=True, default=None, help_text="Lines after `attempt:line`."
    )
    limit = WholeNumberField(required=False, default=1000, min_value=1, max_value=MAX_LIMIT)


class StreamQuery(LogChoiceQuery):
    """The position where a stream begins. Last-Event-ID takes precedence over it all."""

    after = CursorField(required=False, allow_blank=True, default=None)
    tail = WholeNumberField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=MAX_LIMIT,
        help_text="Begin with the last so many lines.",
    )


class DownloadQuery(LogChoiceQuery):
    """A log as text."""

    times = serializers.BooleanField(
        required=False, default=False, help_text="Put its time before each line."
    )
    format = ChoiceField(
        choices=["text", "gzip"],
        required=False,
        default="text",
        help_text="A .log file, or a .log.gz file.",
    )


def question_of(query: dict[str, Any]) -> Question:
    """Return the search question of a checked query."""
    return Question(
        query["q"],
        is_regex=query["regex"],
        with_case=query["case"],
        rank=query["rank"],
        stream=query["stream"] or None,
        level=query["level"] or None,
        since_ms=_milliseconds(query["since"]),
        until_ms=_milliseconds(query["until"]),
    )


def _milliseconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)


def checked(
    serializer: type[serializers.Serializer[Any]], query: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `query` in the shape of `serializer`. ValidationError: it does not fit.

    Ignores empty values, which forms send for unset fields.
    """
    require_known_parameters(query, serializer().fields)
    return read(serializer, {key: value for key, value in query.items() if value != ""})


def choice_of(query: dict[str, Any]) -> LogChoice:
    """Return the choice of lines of a checked query."""
    wanted = Wanted(query["rank"], query["stream"] or None)
    return LogChoice(query["attempt"], wanted)
