"""Jobs that have not ended count what SkyPilot makes of `accelerators`.

`{H100:8}` in YAML is a mapping of "H100:8" to nothing: it was counted as one GPU of that type. What an
alternative says was not counted where something else stood beside it, and of choices not the largest.
"""

import math

from django.db import migrations

UNFINISHED = ["QUEUED", "PROVISIONING", "SETTING_UP", "RUNNING", "RECOVERING", "STOPPING"]
# What the columns hold.
MOST, LONGEST = 2_147_483_647, 80


def counted(text, count=None):
    name, _, beside = str(text).strip().partition(":")
    try:
        return name.upper(), math.ceil(float(count or beside or 1))
    except (OverflowError, ValueError):
        # No number, which nobody can have written since counts are checked: one, as before.
        return name.upper(), 1


def choices_of(resources):
    wanted = resources.get("accelerators") or []
    if isinstance(wanted, dict):
        return [counted(name, count) for name, count in wanted.items()]
    if isinstance(wanted, str):
        wanted = wanted.strip("{}").split(",")
    return [counted(text) for text in wanted]


def most_of(resources):
    """As `monarch_client.spec.accelerators.most_accelerators` when this was written."""
    others = [*(resources.get("ordered") or []), *(resources.get("any_of") or [])]
    alternatives = [{**resources, **each} for each in others or [{}]]
    found = [pair for each in alternatives for pair in choices_of(each)]
    return max(found, key=lambda pair: pair[1], default=("", 0))


def count_again(apps, schema_editor):
    jobs = apps.get_model("jobs", "Job").objects.filter(status__in=UNFINISHED)
    for job in jobs.only("spec", "num_nodes", "gpu_type", "gpu_count").iterator():
        gpu_type, of_each_node = most_of(job.spec.get("resources") or {})
        now = (gpu_type[:LONGEST], min(of_each_node * job.num_nodes, MOST))
        if now != (job.gpu_type, job.gpu_count):
            job.gpu_type, job.gpu_count = now
            job.save(update_fields=["gpu_type", "gpu_count"])
    count_clusters_again(apps)


def count_clusters_again(apps):
    """Those that hold machines, by the job that each was made for, which may have ended."""
    Attempt = apps.get_model("jobs", "Attempt")
    clusters = apps.get_model("jobs", "Cluster").objects.exclude(status="GONE")
    for cluster in clusters.only("num_nodes").iterator(chunk_size=500):
        attempts = Attempt.objects.filter(cluster=cluster).order_by("pk")
        resources = attempts.values_list("job__spec__resources", flat=True).first()
        gpu_type, of_each_node = most_of(resources or {})
        gpu_count = min(of_each_node * cluster.num_nodes, MOST)
        clusters.filter(pk=cluster.pk).update(gpu_type=gpu_type[:LONGEST], gpu_count=gpu_count)


class Migration(migrations.Migration):

    dependencies = [
        ("jobs", "0024_wider_prices"),
    ]

    operations = [
        migrations.RunPython(count_again, migrations.RunPython.noop),
    ]
