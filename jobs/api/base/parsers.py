"""Reading request bodies: JSON, and a job's YAML as the text it is. Both within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, JSONParser

from monarch_client.runner.vocabulary.limits import MAX_BODY_BYTES
from monarch_client.spec.files import line_of_byte


def _bounded(stream: IO[Any]) -> bytes:
    body: bytes = stream.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise RequestDataTooBig
    return body


class BoundedJsonParser(JSONParser):
    """JSON of at most 1 MiB."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the decoded value; ParseError when the body is not JSON."""
        try:
            return super().parse(BytesIO(_bounded(stream)), media_type, parser_context)
        except RecursionError:
            raise ParseError("The JSON is nested too deeply.") from None


class YamlTextParser(BaseParser):
    """The text as it is: `JobSpec` parses it, so that its errors can name lines."""

    media_type = "application/yaml"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """Return what the JSON `{"spec": text}` would be; ParseError when it is not UTF-8."""
        body = _bounded(stream)
        try:
            return {"spec": body.decode()}
        except UnicodeDecodeError as error:
            line = line_of_byte(body, error.start)
            raise ParseError(f"Line {line} of the body is not UTF-8.") from None


class OldYamlTextParser(YamlTextParser):
    """The media type from before RFC 9512."""

    media_type = "application/x-yaml"


class TextYamlParser(YamlTextParser):
    """A parser of YAML under the media type that some tools send."""

    media_type = "text/yaml"


class UnreadParser(BaseParser):
    """A parser that leaves the body on the stream, for a view that reads it piece by piece.

    The CSRF check of a browser's request reads the parsed body, whatever its type.
    """

    media_type = "*/*"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """Return an empty object without reading the body."""
        return {}
