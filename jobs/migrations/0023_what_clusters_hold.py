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
        migrations.RunPython(fill_fingerprints, migrations.RunPython.noop),
    ]
