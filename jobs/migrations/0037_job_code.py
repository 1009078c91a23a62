import django.db.models.deletion
from django.db import migrations, models

import jobs.ground.clock


class Migration(migrations.Migration):
    dependencies = [("jobs", "0036_gpu_use")]

    operations = [
        migrations.CreateModel(
            name="JobCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(db_index=True, max_length=64)),
                ("tree", models.CharField(max_length=64)),
                ("size_bytes", models.BigIntegerField()),
                ("file_count", models.PositiveIntegerField()),
                ("attempt_number", models.PositiveIntegerField()),
                ("stored_at", models.DateTimeField(default=jobs.ground.clock.now)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="code",
                        to="jobs.job",
                    ),
                ),
            ],
        ),
    ]
