from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0037_job_code")]

    operations = [
        migrations.AddField(
            model_name="gatewaysession",
            name="kind",
            field=models.CharField(
                choices=[("attach", "Program"), ("ssh", "Shell")],
                db_default="attach",
                default="attach",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="gatewaysession",
            name="purpose",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
    ]
