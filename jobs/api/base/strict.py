"""Refuse query parameters and body fields that an operation does not declare.

A misspelled filter that is ignored answers with too much, and a misspelled field sets nothing. An
operation accepts exactly what its OpenAPI description (`extend_schema`) and its serializers name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ErrorDetail, ParseError, UnsupportedMediaType, ValidationError
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.views import APIView

from monarch_client.spec.findings import nearest, shortened

Shape = type[Serializer[Any]]

# Finding the nearest name is slow, and a body may have 100,000 unknown fields.
MOST_REPORTED = 20

_NO_BODY = "This operation takes no body."


def read(shape: Shape, data: Any) -> dict[str, Any]:
    """Return `data` in the shape of a serializer. ValidationError: it does not fit, field by field.

    Unknown fields are reported first: a misspelled one is most often the missing one as well.
    """
    serializer = shape(data=data)
    if errors := _unknown_fields(serializer, data):
        raise ValidationError(errors)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def require_known_parameters(given: Iterable[str], known: Collection[str]) -> None:
    """Check the names of query parameters. ValidationError: some are not `known`."""
    if errors := _unknown(given, known, "parameter"):
        raise ValidationError(errors)


def require_declared(view: APIView, request: Request) -> None:
    """Check a request against the description of its operation. ValidationError: it has more.

    The fields of a body that the operation declares are checked where the body is read.
    """
    handler = getattr(view, (request.method or "").lower(), None)
    description = getattr(handler, "kwargs", {}).get("schema")
    if description is None:
        return
    schema = description()
    schema.view = view
    require_known_parameters(request.query_params, _names_in(schema.get_override_parameters()))
    if schema.get_request_serializer() is None:
        _require_no_fields(request)


def _names_in(parameters: Iterable[Any]) -> set[str]:
    """Return the names of the query parameters that `extend_schema` declares."""
    names: set[str] = set()
    for each in parameters:
        if not isinstance(each, OpenApiParameter):
            names |= each().fields.keys()
        elif each.location == OpenApiParameter.QUERY:
            names.add(each.name)
    return names


def _require_no_fields(request: Request) -> None:
    try:
        body = request.data
    except (ParseError, UnsupportedMediaType):
        raise ValidationError(_NO_BODY) from None
    if isinstance(body, Mapping):
        errors = _unknown(body, (), "field")
        if errors:
            raise ValidationError(errors)
    elif body is not None:
        raise ValidationError(_NO_BODY)


def _unknown_fields(shape: Any, data: Any) -> dict[str, Any]:
    """Return an error for each field of `data`, at any depth, that `shape` does not have."""
    if isinstance(shape, Serializer):
        if not isinstance(data, Mapping):
            return {}
        fields = {name: each for name, each in shape.fields.items() if not each.read_only}
        errors = _unknown(data, fields, "field")
        pairs = ((name, fields[name], data[name]) for name in fields if name in data)
    else:
        errors = {}
        pairs = ((str(key), shape.child, value) for key, value in _items_of(shape, data))
    errors |= {
        name: below for name, field, value in pairs if (below := _unknown_fields(field, value))
    }
    return errors


def _items_of(shape: Any, data: Any) -> Iterator[tuple[Any, Any]]:
    """Iterate over the items of a list or mapping whose items may have fields themselves."""
    if isinstance(getattr(shape, "child", None), BaseSerializer):
        if isinstance(data, Mapping):
            yield from data.items()
        elif isinstance(data, list):
            yield from enumerate(data)


def _unknown(given: Iterable[str], known: Collection[str], what: str) -> dict[str, Any]:
    names = islice((name for name in given if name not in known), MOST_REPORTED)
    return {shortened(name): [_error(name, known, what)] for name in names}


def _error(name: str, known: Collection[str], what: str) -> ErrorDetail:
    if not known:
        message = f"Unknown {what}; this operation takes none."
    elif guess := nearest(name, known):
        message = f"Unknown {what}; did you mean {guess}?"
    else:
        message = f"Unknown {what}; choose from {', '.join(sorted(known))}."
    return ErrorDetail(message, "unknown")
