"""The form of a template, made from the JSON Schema of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django import forms

Field = Mapping[str, Any]


class ParameterForm(forms.Form):
    """One field for each parameter. The action checks the values; this only carries them."""

    # Names of parameters are the fields' names, apart from those of the page itself.
    prefix = "p"

    def __init__(self, schema: Field, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in schema["properties"].items():
            is_required = name in schema.get("required", ())
            self.fields[name] = _field_of(name, field, is_required=is_required)

    def values(self) -> dict[str, Any]:
        """Return what was typed, by the names of parameters.

        Defaults are left to the template, which has them as they were written.
        """
        typed = {*self.changed_data, *(name for name, each in self.fields.items() if each.required)}
        return {name: value for name, value in self.cleaned_data.items() if name in typed}

    def show_errors(self, errors: list[dict[str, Any]]) -> None:
        """Show the errors of an action at their fields, and the others above."""
        for row in errors:
            name = row["path"].removeprefix("values.")
            is_field = row["path"].startswith("values.") and name in self.fields
            line = f"Line {row['line']} of the specification: " if row.get("line") else ""
            self.add_error(name if is_field else None, line + row["message"])


def _field_of(name: str, field: Field, *, is_required: bool) -> forms.Field:
    kind = "choice" if "enum" in field else str(field["type"])
    common: dict[str, Any] = {
        "label": field.get("title") or name.replace("_", " ").capitalize(),
        "help_text": field.get("description", ""),
        "initial": field.get("default"),
        "required": is_required,
    }
    return _MAKERS[kind](field, common)


def _number(field: Field, common: dict[str, Any]) -> forms.Field:
    attributes: dict[str, Any] = {"step": 1 if field["type"] == "integer" else "any"}
    attributes |= {
        html: field[key] for html, key in (("min", "minimum"), ("max", "maximum")) if key in field
    }
    # As a text it equals what an unchanged field sends.
    initial = str(field["default"]) if "default" in field else None
    more = {"initial": initial, "widget": forms.NumberInput(attributes)}
    return forms.CharField(**{**common, **more})


def _text(field: Field, common: dict[str, Any]) -> forms.Field:
    if field.get("format") == "multiline":
        rows = max(3, min(12, str(field.get("default", "")).count("\n") + 1))
        attributes = {"rows": rows, "class": "mono", "spellcheck": "false"}
        return forms.CharField(**common, strip=False, widget=forms.Textarea(attributes))
    return forms.CharField(**common, widget=forms.TextInput({"autocomplete": "off"}))


def _flag(_: Field, common: dict[str, Any]) -> forms.Field:
    return forms.BooleanField(**{**common, "required": False})


def _choice(field: Field, common: dict[str, Any]) -> forms.Field:
    return forms.ChoiceField(**common, choices=[(each, each) for each in field["enum"]])


def _listed(field: Field, common: dict[str, Any]) -> forms.Field:
    initial = ", ".join(field.get("default", ()))
    help_text = f"{common['help_text']} Separate values by commas.".strip()
    more = {"initial": initial, "help_text": help_text}
    return forms.CharField(**{**common, **more}, widget=forms.TextInput({"autocomplete": "off"}))


_MAKERS: dict[str, Callable[[Field, dict[str, Any]], forms.Field]] = {
    "integer": _number,
    "number": _number,
    "string": _text,
    "boolean": _flag,
    "choice": _choice,
    "array": _listed,
}
