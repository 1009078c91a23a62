from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0050_settled_use"),
    ]

    operations = [
        migrations.AddField(
            model_name="loghead",
            name="last_lines",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
