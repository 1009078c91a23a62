"""The shape of what people type into the pages. Meaning and rights are the actions' affair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm

from jobs.actions.jobs.annotate import NOTE_LIMIT
from jobs.actions.jobs.extend import MOST_S
from jobs.models import User
from jobs.models.user import ZONE_LIMIT
from jobs.statuses import CatchUpPolicy, HourFormat, OverlapPolicy, Role
from monarch_client.spec.durations import seconds_in
from monarch_client.spec.label_keys import changes_in
from monarch_client.spec.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY

if TYPE_CHECKING:
    _SetPasswordForm = SetPasswordForm[User]
else:
    _SetPasswordForm = SetPasswordForm

EXPIRIES = (("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year"), ("", "Never"))


class SignInForm(AuthenticationForm):
    """User name and password."""

    error_messages = {  # noqa: RUF012 - Django reads it from the class
        "invalid_login": "The user name or the password is wrong.",
        "inactive": "This account is not active.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.is_bound:  # the name is there already
            self.fields["username"].widget.attrs.pop("autofocus", None)
            self.fields["password"].widget.attrs["autofocus"] = True


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(
        max_length=100,
        help_text="Where you will use it, for example the name of a laptop.",
        widget=forms.TextInput({"placeholder": "laptop", "autocomplete": "off"}),
    )
    project = forms.ChoiceField(required=False, label="Access")
    days = forms.ChoiceField(choices=EXPIRIES, required=False, label="Expires", initial="90")
    read_only = forms.BooleanField(required=False, label="Read only")

    def __init__(self, *args: Any, projects: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["project"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
        field.choices = [("", "All my projects"), *((slug, slug) for slug in projects)]

    def clean_days(self) -> int | None:
        """Return the days as a number; None for a token that does not expire."""
        days = self.cleaned_data["days"]
        return int(days) if days else None


class PasswordForm(_SetPasswordForm):
    """A new password; the old one is required only when there is one."""

    old_password = forms.CharField(
        label="Current password",
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    field_order = ("old_password", "new_password1", "new_password2")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields["new_password1"].label = "New password"
        self.fields["new_password2"].label = "Repeat the new password"
        if not user.has_usable_password():
            del self.fields["old_password"]

    def clean_old_password(self) -> str:
        """Return the current password, checked."""
        old: str = self.cleaned_data["old_password"]
        if not self.user.check_password(old):
            raise forms.ValidationError("This is not your current password.")
        return old


class TimeForm(forms.Form):
    """The time zone and the hours in which pages show times to a user."""

    time_zone = forms.CharField(
        max_length=ZONE_LIMIT,
        required=False,
        label="Time zone",
        help_text="Such as Europe/Berlin. Empty: the zone of your browser.",
        widget=forms.TextInput(
            {"list": "zones", "autocomplete": "off", "placeholder": "Automatic"}
        ),
    )
    hour_format = forms.ChoiceField(choices=HourFormat, required=False, label="Hours")


class SecretValue(forms.Textarea):
    """A field whose content a page never shows."""

    def format_value(self, value: Any) -> str:
        """Return an empty text, whatever was typed."""
        return ""


class MemberForm(forms.Form):
    """A user and the role they are to have."""

    username = forms.CharField(
        max_length=150, label="User name", widget=forms.TextInput({"autocomplete": "off"})
    )
    role = forms.ChoiceField(choices=Role, initial=Role.MEMBER)


class ProjectForm(forms.Form):
    """The slug and name of a project."""

    slug = forms.CharField(
        max_length=39,
        label="Name in URLs",
        help_text="Old links keep working until another project takes the old name.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    name = forms.CharField(
        max_length=80,
        required=False,
        label="Display name",
        widget=forms.TextInput({"autocomplete": "off"}),
    )


class DeleteProjectForm(forms.Form):
    """The project's slug, typed again as a confirmation."""

    confirm = forms.CharField(
        required=False,
        max_length=100,
        label="Type the project's name to confirm",
        widget=forms.TextInput({"autocomplete": "off"}),
    )


class SecretForm(forms.Form):
    """A secret's name and value. What was typed as the value is never sent back."""

    name = forms.CharField(
        max_length=100, widget=forms.TextInput({"placeholder": "HF_TOKEN", "autocomplete": "off"})
    )
    value = forms.CharField(
        strip=False,
        help_text="Values of fewer than 6 characters are not masked in logs.",
        widget=SecretValue({"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_value(self) -> str:
        """Return the value with LF line ends: browsers send CR LF."""
        value: str = self.cleaned_data["value"]
        return value.replace("\r\n", "\n")


EXTENSIONS = (("30m", "30 minutes"), ("1h", "1 hour"), ("2h", "2 hours"), ("8h", "8 hours"))


class ExtendForm(forms.Form):
    """The time to add to a job. `key` distinguishes one form sent twice from two forms."""

    duration = forms.CharField(max_length=50)
    key = forms.CharField(max_length=100, required=False)

    def clean_duration(self) -> int:
        """Return seconds: an option of the form, or any other length of time up to a year."""
        seconds = seconds_in(self.cleaned_data["duration"].strip())
        if seconds is None or not 1 <= seconds <= MOST_S:
            raise forms.ValidationError("Enter a duration such as 90m or 2h.")
        return seconds


class AnnotateForm(forms.Form):
    """The labels and note of a job, and those that the form was filled with.

    Only differences between the two are changes: what others changed meanwhile stays.
    """

    labels = forms.CharField(required=False, max_length=4000)
    shown_labels = forms.CharField(required=False, max_length=4000)
    note = forms.CharField(required=False, max_length=2 * NOTE_LIMIT)
    shown_note = forms.CharField(required=False, max_length=2 * NOTE_LIMIT)

    def clean_labels(self) -> dict[str, str | None]:
        """Return the labels by name."""
        return _labels_in(self.cleaned_data["labels"])

    def clean_shown_labels(self) -> dict[str, str | None]:
        """Return the labels that the form was filled with."""
        return _labels_in(self.cleaned_data["shown_labels"])

    @property
    def label_changes(self) -> dict[str, str | None]:
        """The changed labels; None removes one."""
        typed, shown = self.cleaned_data["labels"], self.cleaned_data["shown_labels"]
        changes = {name: value for name, value in typed.items() if shown.get(name) != value}
        return changes | {name: None for name in shown if name not in typed}

    @property
    def new_note(self) -> str | None:
        """The changed note; None if it is the one that was shown."""
        typed, shown = (
            self.cleaned_data[name].replace("\r\n", "\n") for name in ("note", "shown_note")
        )
        return None if typed == shown else typed


def _labels_in(text: str) -> dict[str, str | None]:
    """Return the labels in a text such as `team=rl, draft`; `name-` removes one."""
    words = [word.strip() for word in text.split(",")]
    written = (word if "=" in word or word.endswith("-") else f"{word}=" for word in words if word)
    try:
        return changes_in(written)
    except ValueError as error:
        raise forms.ValidationError(str(error)) from error


class PriorityForm(forms.Form):
    """The priority that a queued job is to have."""

    priority = forms.IntegerField(min_value=LOWEST_PRIORITY, max_value=HIGHEST_PRIORITY)


class StacksForm(forms.Form):
    """The processes whose stacks are dumped: those of a rank, or a single one there."""

    rank = forms.IntegerField(min_value=0, max_value=2**31 - 1)
    pid = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)


class ScheduleForm(forms.Form):
    """The specification and the times of a schedule. `name` is missing when editing one."""

    name = forms.CharField(
        max_length=60, widget=forms.TextInput({"placeholder": "nightly", "autocomplete": "off"})
    )
    cron = forms.CharField(
        max_length=100,
        label="Cron expression",
        help_text="Minute, hour, day of month, month, day of week; or a shortcut such as @daily.",
        widget=forms.TextInput(
            {"placeholder": "30 2 * * 1-5", "class": "mono", "autocomplete": "off"}
        ),
    )
    zone = forms.CharField(
        max_length=64,
        label="Time zone",
        initial="UTC",
        help_text="For example Europe/Berlin.",
        widget=forms.TextInput({"list": "zones", "autocomplete": "off"}),
    )
    overlap = forms.ChoiceField(
        choices=OverlapPolicy,
        initial=OverlapPolicy.SKIP,
        label="If the last job still runs",
    )
    catch_up = forms.ChoiceField(
        choices=CatchUpPolicy,
        initial=CatchUpPolicy.LATEST,
        label="Missed times",
    )
    # Its editor is a template of its own.
    source = forms.CharField(strip=False, label="Job specification, YAML")

    def __init__(self, *args: Any, is_new: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What an action finds wrong in the specification, as the editor lists it.
        self.spec_errors: list[dict[str, Any]] = []
        if not is_new:
            del self.fields["name"]

    def clean_source(self) -> str:
        """Return the specification with LF line ends: browsers send CR LF."""
        source: str = self.cleaned_data["source"]
        return source.replace("\r\n", "\n")
