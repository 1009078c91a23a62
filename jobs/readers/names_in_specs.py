"""The names that a specification can refer to, for the completion of editors."""

from __future__ import annotations

from jobs.models import Job, Project, Queue
from jobs.permissions import Actor, Verb, may, require
from jobs.readers.infra import infra
from jobs.templating.find import templates_for

# The newest jobs whose names are completed.
_NEWEST_JOBS = 200


def names_in_specs(actor: Actor, project: Project) -> dict[str, list[str]]:
    """Return the names by kind, as `Key.names` calls them, that the actor may see."""
    require(actor, Verb.VIEW_PROJECT, project)
    known = infra()
    gpus = [gpu for each in known for gpu in each.gpus]
    clouds = [cloud.name.lower() for each in known for cloud in each.clouds if cloud.is_enabled]
    local = [each.backend for each in known if each.num_nodes is not None]
    secrets = project.secrets if may(actor, Verb.LIST_SECRETS, project) else None
    newest = Job.objects.filter(project=project).order_by("-pk").values_list("name", flat=True)
    return {
        "queues": list(Queue.objects.order_by("name").values_list("name", flat=True)),
        "secrets": list(secrets.order_by("name").values_list("name", flat=True)) if secrets else [],
        "jobs": list(dict.fromkeys(newest[:_NEWEST_JOBS])),
        "infra": sorted({*local, *clouds, *(gpu.infra for gpu in gpus)}),
        "gpus": sorted({gpu.gpu for gpu in gpus}),
        "templates": [each.template.name for each in templates_for(project)],
    }
