from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0046_job_indexes")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="time_zone",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="user",
            name="hour_format",
            field=models.CharField(
                blank=True,
                choices=[("", "Automatic"), ("24", "24 hours"), ("12", "12 hours")],
                db_default="",
                default="",
                max_length=2,
            ),
        ),
    ]
