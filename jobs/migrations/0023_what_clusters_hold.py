import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from jobs.policies.reuse import fingerprint

FINAL = ("SUCCEEDED", "FAILED", "CANCELLED")


def fill_fingerprints(apps, schema_editor):
    """Of jobs that may still go onto a cluster that was kept."""
    jobs = apps.get_model("jobs", "Job").objects.exclude(status__in=FINAL)
    taking = jobs.filter(spec__portal__reuse=True).exclude(spec__portal__has_key="cluster")
    for job in taking.only("spec", "backend_name", "num_nodes").iterator(chunk_size=500):
        alike = fingerprint(job.spec, job.backend_name, job.num_nodes)
        jobs.filter(pk=job.pk).update(fingerprint=alike)


def fill_clusters(apps, schema_editor):
    """Those that hold machines, by the job that each was made for; if it is deleted, by the next.

    Whoever came later may have used a part of the nodes: GPUs are those of as many as there are.
    """
    Attempt = apps.get_model("jobs", "Attempt")
    clusters = apps.get_model("jobs", "Cluster").objects.exclude(status="GONE")
    for cluster in clusters.only("num_nodes").iterator(chunk_size=500):
        attempts = Attempt.objects.filter(cluster=cluster).order_by("pk")
        first = attempts.select_related("job").defer("job__spec", "job__spec_source").first()
        if first is None:
            continue
        job = first.job
        clusters.filter(pk=cluster.pk).update(
            started_by=job.submitted_by_id,
            queue_name=job.queue_name,
            gpu_type=job.gpu_type,
            gpu_count=job.gpu_count * cluster.num_nodes // max(1, job.num_nodes),
            price_key=job.price_key,
        )


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0022_owed_machines'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='fingerprint',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name='cluster',
            name='started_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='cluster',
            name='queue_name',
            field=models.CharField(default='default', max_length=60),
        ),
        migrations.AddField(
            model_name='cluster',
            name='gpu_type',
            field=models.CharField(blank=True, max_length=80),
        ),
        migrations.AddField(
            model_name='cluster',
            name='gpu_count',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='cluster',
            name='price_key',
            field=models.CharField(blank=True, max_length=24),
        ),
        migrations.RunPython(fill_fingerprints, migrations.RunPython.noop),
        migrations.RunPython(fill_clusters, migrations.RunPython.noop),
    ]
