from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_squashed_0025_count_gpus_again")]

    operations = [
        migrations.RemoveField(model_name="handedsecrets", name="open_ends"),
        migrations.AddField(
            model_name="loghead",
            name="open_ends",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
