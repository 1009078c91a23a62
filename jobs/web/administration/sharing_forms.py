"""The forms about how machines are shared: queues, pools, quotas and weights."""

from __future__ import annotations

from typing import Any

from django import forms

from monarch_client.spec.amounts import amount_in, words_of

_MONO = {"class": "mono", "autocomplete": "off", "spellcheck": "false"}
_NAME = forms.TextInput({"autocomplete": "off"})


class AmountsField(forms.CharField):
    """Amounts as text, such as `nodes=8 gpus:H100=64`; the value is a dictionary."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput({**_MONO, "placeholder": "nodes=8 gpus:H100=64"})
        super().__init__(**{"max_length": 2000, "widget": widget, **options})

    def clean(self, value: Any) -> dict[str, float]:
        """Return amounts by resource. Which resources exist is for the action."""
        amounts: dict[str, float] = {}
        for word in words_of(super().clean(value)):
            amount = amount_in(word)
            if amount is None:
                raise forms.ValidationError(f"{word[:60]} is not WHAT=N, such as nodes=8.")
            if amount[0] in amounts:
                raise forms.ValidationError(f"{amount[0][:60]} is named twice.")
            amounts[amount[0]] = amount[1]
        return amounts


class NamedForm(forms.Form):
    """The settings of something that has a name, which only a new one is given."""

    name = forms.CharField(max_length=39, widget=_NAME)

    def __init__(self, *args: Any, is_new: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if not is_new:
            del self.fields["name"]


class QueueForm(NamedForm):
    """The settings of a queue."""

    rank = forms.IntegerField(
        initial=0, help_text="In a pool, jobs of queues with a higher rank come first."
    )
    pool = forms.ChoiceField(required=False)
    preemptible = forms.BooleanField(
        required=False, label="Jobs of this queue may be stopped for others"
    )

    def __init__(self, *args: Any, pools: list[str], **options: Any) -> None:
        super().__init__(*args, **options)
        _offer(self, "pool", [("", "None"), *((name, name) for name in pools)])


class PoolForm(NamedForm):
    """The settings of a pool."""

    backend = forms.ChoiceField()
    caps = AmountsField(required=False, label="Machines", help_text="Empty: all of the backend.")
    patience = forms.CharField(
        max_length=50,
        required=False,
        label="Patience",
        help_text="A job that has waited longer comes before higher priorities, such as 12h.",
        widget=_NAME,
    )
    half_life = forms.CharField(
        max_length=50,
        required=False,
        label="Half-life of usage",
        help_text="Earlier usage counts half after this time, such as 7d.",
        widget=_NAME,
    )
    reclaim = forms.BooleanField(
        required=False, label="Projects may take back their nominal share by preemption"
    )
    preempts_by_rank = forms.BooleanField(
        required=False, label="Queues may preempt jobs of queues with a lower rank"
    )

    def __init__(self, *args: Any, backends: list[str], **options: Any) -> None:
        super().__init__(*args, **options)
        choices = [(name, name) for name in backends]
        present = (self.initial or {}).get("backend")
        if present is not None and present not in backends:
            # Without its own choice the browser selects another backend.
            choices.insert(0, (present, f"{present} (not available)"))
        _offer(self, "backend", choices)

    def clean(self) -> dict[str, Any]:
        """Return the values; an empty length of time leaves the present one."""
        data = super().clean() or self.cleaned_data
        return {**data, **{key: data.get(key) or None for key in ("patience", "half_life")}}


class QuotaAmountsForm(forms.Form):
    """The amounts of a quota."""

    caps = AmountsField(
        label="Limit",
        help_text="What may run at once: jobs, nodes, gpus, gpus:TYPE, usd_per_hour.",
        error_messages={
            "required": "Enter the limit too: the most that may run at once, with what is borrowed."
        },
    )
    nominal = AmountsField(
        required=False,
        label="Nominal share",
        help_text=(
            "Only of a project: the part of the limit that it can take back by preemption, where "
            "the pool allows that. The rest is borrowed."
        ),
    )


class QuotaForm(QuotaAmountsForm):
    """A new quota: its scope and its amounts."""

    queue = forms.ChoiceField(required=False)
    project = forms.ChoiceField(required=False)
    user = forms.CharField(
        max_length=150,
        required=False,
        label="Person in the project",
        help_text="Empty: the whole project.",
        widget=_NAME,
    )
    pool = forms.ChoiceField(required=False, label="Only in pool")
    per_person = forms.BooleanField(required=False, label="For each person in the project")
    field_order = ("project", "user", "queue", "pool", "caps", "nominal", "per_person")

    def __init__(
        self,
        *args: Any,
        queues: list[str],
        projects: list[str],
        pools: list[str],
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        for name, values, none in (
            ("queue", queues, "None"),
            ("project", projects, "None"),
            ("pool", pools, "All pools"),
        ):
            _offer(self, name, [("", none), *((value, value) for value in values)])


class WeightForm(forms.Form):
    """The weight of a project in fair sharing."""

    weight = forms.FloatField()


class NewProjectForm(forms.Form):
    """A new project."""

    slug = forms.CharField(
        max_length=39,
        label="Name in URLs",
        help_text="Small letters, digits and dashes.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    name = forms.CharField(
        max_length=80,
        required=False,
        label="Display name",
        widget=forms.TextInput({"autocomplete": "off"}),
    )


def _offer(form: forms.Form, name: str, choices: list[tuple[str, str]]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)  # noqa: S101 - for the type checker
    field.choices = choices
