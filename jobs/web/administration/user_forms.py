"""The forms about users of the installation."""

from __future__ import annotations

from django import forms

from jobs.statuses import Role

LIFETIMES = (("12", "In 12 hours"), ("48", "In 2 days"), ("168", "In a week"))
_WITHOUT_PROJECT = ("", "None yet")


class LinkForm(forms.Form):
    """The lifetime of a sign-in link."""

    hours = forms.TypedChoiceField(
        choices=LIFETIMES, coerce=int, initial="48", label="The link expires"
    )


class InviteForm(LinkForm):
    """A new user, and the project of their first jobs."""

    username = forms.CharField(
        max_length=150, label="User name", widget=forms.TextInput({"autocomplete": "off"})
    )
    project = forms.ChoiceField(required=False)
    role = forms.ChoiceField(choices=Role, initial=Role.MEMBER)
    field_order = ("username", "project", "role", "hours")

    def __init__(self, *args: object, projects: list[str], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        field = self.fields["project"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
        field.choices = [_WITHOUT_PROJECT, *((slug, slug) for slug in projects)]
