"""The bodies and queries of requests about projects."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.flag_field import FlagField
from jobs.api.base.text_field import TextField
from jobs.statuses import ProjectState


class ProjectBody(serializers.Serializer[Any]):
    """A project to make."""

    slug = TextField()
    name = TextField(required=False, default="", allow_blank=True)


class ProjectChanges(serializers.Serializer[Any]):
    """The changes of a project; what is left out does not change."""

    slug = TextField(required=False)
    name = TextField(required=False, allow_blank=True, help_text="Empty: the slug.")
    laptops_may_attach = FlagField(
        required=False, help_text="Whether laptops may attach to jobs that have a driver."
    )


class ProjectListQuery(serializers.Serializer[Any]):
    """The filters of the project list."""

    state = ChoiceField(
        choices=ProjectState.choices,
        required=False,
        default=ProjectState.ACTIVE,
        help_text="Deleted ones are listed for administrators of the installation alone.",
    )


class ProjectDeleteQuery(serializers.Serializer[Any]):
    """The confirmation that a project is to be deleted."""

    confirm = TextField(
        required=False, default="", allow_blank=True, help_text="The project's slug once more."
    )
